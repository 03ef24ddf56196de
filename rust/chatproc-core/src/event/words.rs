//! The contract's words: each closed list of them as an enumeration.

/// Makes an enumeration out of the contract's words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$case_doc:meta])* $case:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$case_doc])* $case),+ }

        impl $name {
            /// The contract's words, in its order.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The contract's word for this.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$case => $word),+ }
            }

            /// What the contract means by a word, if anything.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$case),)+ _ => None }
            }
        }
    };
}

words! {
    /// What became of a message in this revision.
    State {
        /// As first sent.
        Normal = "normal",
        /// Changed by its sender.
        Edited = "edited",
        /// Withdrawn: its text and attachments are not to be used.
        Recalled = "recalled",
    }
}
words! {
    /// What a message is.
    Kind {
        /// Something that someone says.
        Message = "message",
        /// A notice: a link in the sequence, never sent to a model.
        System = "system",
    }
}
words! {
    /// What a sender is.
    Role {
        /// Another person.
        User = "user",
        /// The collecting account itself.
        SelfRole = "self",
        /// A program.
        Bot = "bot",
        /// The platform.
        System = "system",
        /// Not told.
        Unknown = "unknown",
    }
}
words! {
    /// What sort of conversation a message stands in.
    ConversationType {
        /// Several people.
        Group = "group",
        /// Two people.
        Private = "private",
        /// One to many.
        Channel = "channel",
        /// A part of another conversation.
        Thread = "thread",
        /// A mailbox.
        Mailbox = "mailbox",
        /// Not told.
        Unknown = "unknown",
    }
}
words! {
    /// Whether the archive has an attachment's file.
    AttachmentState {
        /// It is there.
        Present = "present",
        /// It should be there and is not.
        Missing = "missing",
        /// The collector did not bring it.
        NotExported = "not_exported",
        /// The platform no longer has it.
        Expired = "expired",
    }
}
words! {
    /// Why a line was refused, in the order in which reasons are looked for.
    Reason {
        /// Longer than the configured limit.
        TooLong = "too-long",
        /// Bytes that are no UTF-8.
        NotUtf8 = "not-utf8",
        /// Text that is no JSON.
        NotJson = "not-json",
        /// JSON that is no object.
        NotAnObject = "not-an-object",
        /// More than 64 levels.
        TooDeep = "too-deep",
        /// A key twice in one object.
        DuplicateKey = "duplicate-key",
        /// Another schema.
        SchemaUnknown = "schema-unknown",
        /// A required field is not there.
        MissingField = "missing-field",
        /// A field outside its bounds.
        BadField = "bad-field",
        /// The event id of an earlier event that says something else.
        EventConflict = "event-conflict",
        /// The message and revision of an earlier event that says something else.
        RevisionConflict = "revision-conflict",
    }
}
