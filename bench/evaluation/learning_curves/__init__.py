"""Curves of scores along trainings: who leads where, from where on a method is flat, what is to be expected."""
