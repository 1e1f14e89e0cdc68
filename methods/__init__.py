"""The methods that come with the harness: each package makes a retriever and is a plugin of its own."""
