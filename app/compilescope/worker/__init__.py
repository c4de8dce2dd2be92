"""What runs in the user's interpreter: loads a script, compiles it, checks and measures it, and tells what it saw."""
