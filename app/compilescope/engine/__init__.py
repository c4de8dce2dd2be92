"""Runs worker processes: starts them, reads what they tell, and leaves nothing of them behind."""
