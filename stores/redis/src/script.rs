//! The script that does an exchange, and what it is given.

use std::sync::LazyLock;

use incumbent_core::store::{Exchange, Expect, Read, Write};
use redis::{Cmd, Script};

use crate::keys::Keys;

const TEXT: &str = include_str!("exchange.lua");

static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(TEXT));

/// The call by the script's hash, which the server knows once it has seen the text.
pub(crate) fn by_hash(keys: &Keys, exchange: &Exchange) -> Cmd {
    let mut command = command(exchange);
    command.arg("EVALSHA").arg(SCRIPT.get_hash());
    arguments(&mut command, keys, exchange);
    command
}

/// The same call with the text.
pub(crate) fn by_text(keys: &Keys, exchange: &Exchange) -> Cmd {
    let mut command = command(exchange);
    command.arg("EVAL").arg(TEXT);
    arguments(&mut command, keys, exchange);
    command
}

/// A command with room for all of it.
fn command(exchange: &Exchange) -> Cmd {
    let values = exchange.writes.iter().map(|write| match write {
        Write::Put(put) => put.value.len(),
        Write::Delete(_) => 0,
    });
    let count = exchange.writes.len() * 6 + exchange.reads.len() * 3 + 10;
    Cmd::with_capacity(count, values.sum::<usize>() + count * 32)
}

fn arguments(command: &mut Cmd, keys: &Keys, exchange: &Exchange) {
    command.arg(3).arg(&keys.records).arg(&keys.stamps).arg(&keys.index).arg(&keys.channel);
    command.arg(exchange.writes.len()).arg(mode(&exchange.writes));
    for write in &exchange.writes {
        match write {
            Write::Put(put) => {
                let (kind, expected) = match &put.expect {
                    Expect::Absent => ("create", ""),
                    Expect::Version(version) => ("swap", version.as_str()),
                };
                command.arg(kind).arg(put.key.as_str()).arg(put.value.as_slice());
                command.arg(put.stamp.to_string()).arg(expected);
                command.arg(if put.hint { "1" } else { "" });
            }
            Write::Delete(key) => {
                command.arg("delete").arg(key.as_str()).arg("").arg("").arg("").arg("");
            }
        }
    }
    for read in &exchange.reads {
        match read {
            Read::Key { key, unless } => {
                let unless = unless.as_ref().map_or("", |version| version.as_str());
                command.arg("key").arg(key.as_str()).arg(unless);
            }
            Read::Prefix(prefix) => {
                command.arg("prefix").arg(prefix.as_str()).arg("");
            }
        }
    }
}

/// What the script has to make sure of before it begins. Deletes need no memory, so that a full
/// server can be cleaned up.
fn mode(writes: &[Write]) -> &'static str {
    if writes.iter().any(|write| matches!(write, Write::Put(_))) {
        "put"
    } else if writes.is_empty() {
        "read"
    } else {
        "delete"
    }
}
