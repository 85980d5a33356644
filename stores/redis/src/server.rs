//! What a server says about itself when the store is opened.

use incumbent_core::store::{Access, Exchange, StoreError};
use incumbent_store_common::Sent;
use redis::Value;

use crate::connection::Connection;
use crate::error::{broken, said};
use crate::keys::Keys;
use crate::options::{Eviction, RedisOptions};
use crate::{answer, script};

/// What matters about a server's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Whether all that is acknowledged is logged; nothing where the server won't say.
    appendonly: Option<String>,
    /// When that log is written through to the disk.
    appendfsync: Option<String>,
    /// What the server throws away when its memory is full.
    policy: Option<String>,
}

impl Settings {
    /// Whether an acknowledged write survives the loss of power. Where the server may not be
    /// asked, nothing is promised.
    pub(crate) fn is_durable(&self) -> bool {
        self.appendonly.as_deref() == Some("yes") && self.appendfsync.as_deref() == Some("always")
    }

    /// What an operator should know, each a whole sentence.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let kept = match (self.appendonly.as_deref(), self.appendfsync.as_deref()) {
            (None, _) => Some(
                "CONFIG GET isn't allowed, so it isn't known what a crash of the server loses. \
                 Grant +config|get to see it here."
                    .to_owned(),
            ),
            (Some("yes"), Some("always")) => None,
            (Some("yes"), fsync) => Some(format!(
                "appendfsync is {}: if the server's machine crashes, up to two seconds may be \
                 gone, terms included. Set appendfsync always where terms must survive that.",
                fsync.unwrap_or("unknown")
            )),
            (Some(_), _) => Some(
                "appendonly is off: when the server ends, everything since its last snapshot is \
                 gone, terms included. Set appendonly yes."
                    .to_owned(),
            ),
        };
        let evicts = self.policy.as_deref().filter(|policy| policy.starts_with("allkeys-"));
        let evicts = evicts.map(|policy| {
            format!(
                "maxmemory-policy is {policy}: leases may be evicted at any time, and then two \
                 nodes lead. Set noeviction."
            )
        });
        kept.into_iter().chain(evicts).collect()
    }
}

const ASKED: [&str; 3] = ["appendonly", "appendfsync", "maxmemory-policy"];

/// Looks whether the server can be used, and how much it keeps.
pub(crate) async fn check(options: &RedisOptions) -> Result<Settings, StoreError> {
    let connection = Connection::open(options, "opening").await?;
    // An exchange of nothing shows whether scripts run, keys are free and this is a primary.
    let (keys, nothing) = (Keys::new(&options.prefix, options.database, ""), Exchange::default());
    let mut commands = redis::pipe();
    commands.add_command(script::by_text(&keys, &nothing, options.access));
    for name in ASKED {
        commands.cmd("CONFIG").arg("GET").arg(name);
    }
    let looks = options.access == Access::Look;
    if !looks {
        commands.cmd("PUBLISH").arg(&keys.channel).arg("");
    }
    let replies = connection.send_all(&commands).await;
    let replies = replies.map_err(|error| broken(options, &error, Sent::Nothing).error)?;
    let mut replies = replies.into_iter();
    match replies.next() {
        Some(Value::ServerError(error)) => return Err(said(options, &error, Sent::Nothing).error),
        Some(answer) if answer::reply(&nothing, answer.clone()).is_some() => {}
        _ => return Err(crate::error::nonsense(options, Sent::Nothing).error),
    }
    let [appendonly, appendfsync, policy] =
        ASKED.map(|_| replies.next().and_then(|reply| setting(&reply)));
    if options.hints
        && !looks
        && let Some(Value::ServerError(error)) = replies.next()
    {
        return Err(said(options, &error, Sent::Nothing).error);
    }
    if !looks {
        refuse_eviction(options, policy.as_deref())?;
    }
    Ok(Settings { appendonly, appendfsync, policy })
}

/// The value in the answer to CONFIG GET, a list of a name and a value.
fn setting(reply: &Value) -> Option<String> {
    let Value::Array(pair) = reply else { return None };
    let Some(Value::BulkString(value)) = pair.get(1) else { return None };
    Some(String::from_utf8_lossy(value).into_owned())
}

/// Policies called volatile-… take only keys with a time to live, which incumbent's haven't.
fn refuse_eviction(options: &RedisOptions, policy: Option<&str>) -> Result<(), StoreError> {
    match (policy, options.eviction) {
        (Some(policy), Eviction::Refuse) if policy.starts_with("allkeys-") => {
            Err(StoreError::rejected(format!(
                "{}: its maxmemory-policy is {policy}, so it may evict leases and their terms, \
                 and then two leaders at once are possible. Run CONFIG SET maxmemory-policy \
                 noeviction (or volatile-lru) and set it in redis.conf, use another server, or \
                 accept this with eviction=allow",
                options.server()
            )))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_that_loses_something_is_told() {
        let settings = |values: [Option<&str>; 3]| {
            let [appendonly, appendfsync, policy] = values.map(|it| it.map(str::to_owned));
            Settings { appendonly, appendfsync, policy }
        };
        let safe = settings([Some("yes"), Some("always"), Some("noeviction")]);
        assert!(safe.is_durable() && safe.warnings().is_empty(), "{:?}", safe.warnings());
        for (values, word) in [
            ([Some("yes"), Some("everysec"), None], "everysec"),
            ([Some("no"), Some("always"), None], "appendonly"),
            ([None, None, None], "+config|get"),
        ] {
            let settings = settings(values);
            assert!(!settings.is_durable());
            let said = settings.warnings();
            assert!(said.len() == 1 && said[0].contains(word), "{said:?}");
        }
        let evicting = settings([Some("yes"), Some("always"), Some("allkeys-lru")]);
        assert!(evicting.warnings()[0].contains("allkeys-lru"));
    }
}
