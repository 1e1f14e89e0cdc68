"""Results from elsewhere: the open format, its checks, and how a result is packed and added."""
