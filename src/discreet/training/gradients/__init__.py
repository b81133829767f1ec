"""Everything behind the clipped sum: each record's gradient, seen, measured, clipped and added up in one backward pass."""
