//! A line as collectors usually write it, read in one pass straight into an event.
//!
//! Must read what it reads exactly as [`super::strict`] does. Whatever is not usual is left to that: a key
//! that the contract does not know, a value outside its bounds, anything that is wrong.

use std::borrow::Cow;

use super::bounds::{self, SCHEMA};
use super::canonical::write_content;
use super::keys::Keys;
use super::pass::Pass;
use super::{Attachment, AttachmentState, ConversationType, Event, Kind, Mention, Role, Sequence, State};
use crate::fingerprint::{Fingerprint, sha256};

/// Names the keys of one of the contract's objects, as they usually follow each other.
macro_rules! keys {
    ($table:ident: $name:ident { $($case:ident = $key:literal),+ $(,)? }) => {
        #[derive(Clone, Copy)]
        enum $name { $($case),+ }

        static $table: Keys<$name, { [$($key),+].len() }> =
            Keys::new([$(($name::$case, concat!("\"", $key, "\":"))),+]);
    };
}

keys! {
    EVENT: EventKey {
        Schema = "schema",
        EventId = "event_id",
        MessageKey = "message_key",
        Revision = "revision",
        State = "state",
        Kind = "kind",
        Platform = "platform",
        AccountId = "account_id",
        Conversation = "conversation",
        MessageId = "message_id",
        SentAt = "sent_at",
        Sender = "sender",
        Text = "text",
        Mentions = "mentions",
        ReplyTo = "reply_to",
        Attachments = "attachments",
        Sequence = "sequence",
        Selection = "selection",
        CollectedAt = "collected_at",
        Source = "source",
    }
}
keys! { CONVERSATION: ConversationKey { Id = "id", Name = "name", Type = "type" } }
keys! { SENDER: SenderKey { Id = "id", Name = "name", Role = "role" } }
keys! { MENTION: MentionKey { All = "all", Id = "id", Name = "name" } }
keys! {
    ATTACHMENT: AttachmentKey {
        Id = "id",
        Name = "name",
        Mime = "mime",
        Size = "size",
        Sha256 = "sha256",
        Path = "path",
        State = "state",
    }
}
keys! { SEQUENCE: SequenceKey { Index = "index", Predecessor = "predecessor" } }
keys! { SELECTION: SelectionKey { Rules = "rules", Window = "window" } }

/// Reads a line if it is usual.
pub fn read(text: &str) -> Option<Event<'_>> {
    let mut pass = Pass::over(text);
    let mut event = read_fields(&mut pass)?;
    event.event_hash = sha256(&[pass.end()?]);
    let mut content = pass.room();
    write_content(&mut content, &event);
    event.content_hash = sha256(&[&content]);
    Some(event)
}

fn read_fields<'a>(pass: &mut Pass<'a>) -> Option<Event<'a>> {
    let (mut schema, mut event_id, mut message_key, mut revision) = (None, None, None, None);
    let (mut state, mut kind, mut platform, mut account_id) = (State::Normal, Kind::Message, None, None);
    let (mut conversation, mut message_id, mut sent_at, mut sender) = (None, None, None, None);
    let (mut text, mut mentions, mut reply_to, mut attachments) = (None, Vec::new(), None, Vec::new());
    let (mut sequence, mut rules, mut collected_at) = (None, None, None);
    pass.object(&EVENT, |pass, key| {
        match key {
            EventKey::Schema => schema = Some(pass.text()?),
            EventKey::EventId => event_id = Some(pass.text()?),
            EventKey::MessageKey => message_key = Some(pass.text()?),
            EventKey::Revision => revision = Some(pass.number(bounds::natural)?),
            EventKey::State => state = read_word(pass, State::from_word, State::Normal)?,
            EventKey::Kind => kind = read_word(pass, Kind::from_word, Kind::Message)?,
            EventKey::Platform => platform = Some(pass.text()?),
            EventKey::AccountId => account_id = Some(pass.text()?),
            EventKey::Conversation => conversation = Some(read_conversation(pass)?),
            EventKey::MessageId => message_id = pass.optional(Pass::text)?,
            EventKey::SentAt => sent_at = Some(pass.number(bounds::seconds)?),
            EventKey::Sender => sender = Some(read_sender(pass)?),
            EventKey::Text => text = Some(pass.text()?),
            EventKey::Mentions => mentions = read_list(pass, read_mention)?,
            EventKey::ReplyTo => reply_to = pass.optional(Pass::text)?,
            EventKey::Attachments => attachments = read_list(pass, read_attachment)?,
            EventKey::Sequence => sequence = pass.optional(read_sequence)?,
            EventKey::Selection => rules = pass.optional(read_selection)?,
            EventKey::CollectedAt => {
                collected_at = pass.optional(|pass| pass.number(bounds::seconds))?;
            }
            EventKey::Source => drop(pass.optional(|pass| pass.free_object(1))?),
        }
        Some(())
    })?;
    let (conversation, sender) = (conversation?, sender?);
    let event = Event {
        event_id: event_id.filter(|id| bounds::is_length(id, 1, 256))?,
        message_key: message_key.filter(|key| bounds::is_length(key, 1, 512))?,
        revision: revision?,
        state,
        kind,
        platform: platform.filter(|platform| bounds::is_platform(platform))?,
        account_id: account_id?,
        conversation_id: conversation.id,
        conversation_name: conversation.name,
        conversation_type: conversation.sort,
        message_id,
        sent_at: sent_at?,
        sender_id: sender.id,
        sender_name: sender.name,
        role: sender.role,
        text: text?,
        mentions,
        reply_to,
        attachments,
        sequence,
        rules: rules.unwrap_or_default(),
        collected_at: collected_at.unwrap_or(0),
        event_hash: Fingerprint::default(),
        content_hash: Fingerprint::default(),
    };
    (schema? == SCHEMA).then_some(event)
}

/// Reads one of a few words or null, which means `usual` as well.
fn read_word<T: PartialEq>(pass: &mut Pass<'_>, meaning: fn(&str) -> Option<T>, usual: T) -> Option<T> {
    let Some(word) = pass.optional(Pass::text)? else { return Some(usual) };
    let known = meaning(&word)?;
    if known == usual {
        pass.is_default();
    }
    Some(known)
}

/// Reads a list, of which one without items means as much as none.
fn read_list<'a, T>(pass: &mut Pass<'a>, read: fn(&mut Pass<'a>) -> Option<T>) -> Option<Vec<T>> {
    let items = pass.optional(|pass| pass.list(read))?.unwrap_or_default();
    if items.is_empty() {
        pass.is_default();
    }
    Some(items)
}

struct Conversation<'a> {
    id: Cow<'a, str>,
    name: Option<Cow<'a, str>>,
    sort: ConversationType,
}

fn read_conversation<'a>(pass: &mut Pass<'a>) -> Option<Conversation<'a>> {
    let (mut id, mut name, mut sort) = (None, None, ConversationType::Unknown);
    pass.object(&CONVERSATION, |pass, key| {
        match key {
            ConversationKey::Id => id = Some(pass.text()?),
            ConversationKey::Name => name = pass.optional(Pass::text)?,
            ConversationKey::Type => {
                sort = read_word(pass, ConversationType::from_word, ConversationType::Unknown)?;
            }
        }
        Some(())
    })?;
    Some(Conversation { id: id?, name, sort })
}

struct Sender<'a> {
    id: Option<Cow<'a, str>>,
    name: Option<Cow<'a, str>>,
    role: Role,
}

fn read_sender<'a>(pass: &mut Pass<'a>) -> Option<Sender<'a>> {
    let (mut id, mut name, mut role) = (None, None, Role::Unknown);
    pass.object(&SENDER, |pass, key| {
        match key {
            SenderKey::Id => id = pass.optional(Pass::text)?,
            SenderKey::Name => name = pass.optional(Pass::text)?,
            SenderKey::Role => role = read_word(pass, Role::from_word, Role::Unknown)?,
        }
        Some(())
    })?;
    Some(Sender { id, name, role })
}

fn read_mention<'a>(pass: &mut Pass<'a>) -> Option<Mention<'a>> {
    let mut mention = Mention { all: false, id: None, name: None };
    pass.object(&MENTION, |pass, key| {
        match key {
            MentionKey::All => {
                mention.all = pass.optional(Pass::flag)?.unwrap_or(false);
                if !mention.all {
                    pass.is_default();
                }
            }
            MentionKey::Id => mention.id = pass.optional(Pass::text)?,
            MentionKey::Name => mention.name = pass.optional(Pass::text)?,
        }
        Some(())
    })?;
    let names_someone = mention.all || mention.id.is_some() || mention.name.is_some();
    names_someone.then_some(mention)
}

fn read_attachment<'a>(pass: &mut Pass<'a>) -> Option<Attachment<'a>> {
    let (mut id, mut name, mut mime, mut size) = (None, None, None, None);
    let (mut sha256, mut path, mut state) = (None, None, None);
    pass.object(&ATTACHMENT, |pass, key| {
        match key {
            AttachmentKey::Id => id = Some(pass.text()?),
            AttachmentKey::Name => name = pass.optional(Pass::text)?,
            AttachmentKey::Mime => mime = pass.optional(Pass::text)?,
            AttachmentKey::Size => size = pass.optional(|pass| pass.number(bounds::natural))?,
            AttachmentKey::Sha256 => sha256 = pass.optional(Pass::text)?,
            AttachmentKey::Path => path = pass.optional(Pass::text)?,
            AttachmentKey::State => {
                state = pass.optional(|pass| AttachmentState::from_word(&pass.text()?))?;
            }
        }
        Some(())
    })?;
    Some(Attachment { id: id?, name, mime, size, sha256, path, state })
}

fn read_sequence<'a>(pass: &mut Pass<'a>) -> Option<Sequence<'a>> {
    let mut sequence = Sequence { index: None, predecessor: None };
    pass.object(&SEQUENCE, |pass, key| {
        match key {
            SequenceKey::Index => sequence.index = pass.optional(|pass| pass.number(bounds::position))?,
            SequenceKey::Predecessor => sequence.predecessor = pass.optional(Pass::text)?,
        }
        Some(())
    })?;
    Some(sequence)
}

/// Reads the rules of a selection; its window is free.
fn read_selection<'a>(pass: &mut Pass<'a>) -> Option<Vec<Cow<'a, str>>> {
    let mut rules = Vec::new();
    pass.object(&SELECTION, |pass, key| {
        match key {
            SelectionKey::Rules => rules = read_list(pass, Pass::text)?,
            SelectionKey::Window => drop(pass.optional(|pass| pass.free(2))?),
        }
        Some(())
    })?;
    Some(rules)
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn what_collectors_write_is_usual_in_any_order_and_with_any_space() {
        let line = r#"{"schema":"chatproc.event/1","event_id":"e","message_key":"k","revision":0,"state":"normal",
            "kind":"message","platform":"qq","account_id":"1","conversation":{"id":"c","name":"实验室","type":"group"},
            "message_id":null,"sent_at":1782871200.25,"sender":{"id":"1","name":"\u738b\n","role":"user"},"text":"a\tb",
            "mentions":[{"all":true}],"reply_to":null,"attachments":[{"id":"f","name":"a","size":1,"state":"present"}],
            "sequence":{"index":7,"predecessor":"j"},"selection":{"rules":["all"],"window":[1,2]},
            "collected_at":1782871260,"source":{"module":"qq","detail":"x","more":[{"local_id":4412}]}}"#;
        let members: Vec<&str> = line.split('\n').map(str::trim).collect();
        for text in [line.to_owned(), members.concat()] {
            assert!(read(&text).is_some(), "{text}");
        }
        let turned = r#" {"text":"","sent_at":0,"sender":{},"schema":"chatproc.event/1","revision":0,"platform":"qq",
            "message_key":"k","event_id":"e","conversation":{"type":"group","id":""},"account_id":""} "#;
        assert!(read(turned).is_some());
        assert!(read(&turned.replace("account_id", "account")).is_none());
    }
}
