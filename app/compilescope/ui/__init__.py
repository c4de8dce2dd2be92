"""The window: it shows what the runs tell, and never computes or measures itself."""
