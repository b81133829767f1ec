"""Do the tests notice? One operator, bound, constant or branch is changed at a time, and the room's own tests run."""
