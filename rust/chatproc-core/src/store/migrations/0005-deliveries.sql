-- `explain` tells where each delivery of a message was read.
CREATE INDEX events_message ON events(message);
