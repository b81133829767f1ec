"""Long searches for broken promises: run by ``make search``, never by the tests, which run a small part of each."""
