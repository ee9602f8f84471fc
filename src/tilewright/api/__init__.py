"""The library call: products of any framework's arrays. What can't be used as it lies is copied, and said."""
