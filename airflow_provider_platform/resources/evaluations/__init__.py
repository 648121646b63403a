"""Golden questions: how answers and numbers are compared, and the evaluations that ask them."""
