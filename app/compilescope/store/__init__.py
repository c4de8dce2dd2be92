"""What is kept between two starts: every comparison, as its events arrive."""
