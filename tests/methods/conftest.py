"""What tests of methods share lies in the root conftest: `corpus`, `start_of`, `train_method`, `two_processes`."""
