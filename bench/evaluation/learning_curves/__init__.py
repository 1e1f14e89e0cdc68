"""Curves of scores along trainings: who leads where, from where on a method stands still, what is to be expected."""
