//! What a server says about itself when the store is opened.

use incumbent_core::store::{Exchange, StoreError};
use redis::Value;

use crate::connection::Connection;
use crate::error::{Sent, broken, said};
use crate::keys::Keys;
use crate::options::{Eviction, RedisOptions};
use crate::{answer, script};

/// What matters about a server's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Whether an acknowledged write survives the loss of power.
    pub(crate) durable: bool,
}

const ASKED: [&str; 3] = ["appendonly", "appendfsync", "maxmemory-policy"];

/// Looks whether the server can be used, and how much it keeps.
pub(crate) async fn check(options: &RedisOptions) -> Result<Settings, StoreError> {
    let mut connection = Connection::open(options, "opening").await?;
    // An exchange of nothing shows whether scripts run, keys are free and this is a primary.
    let (keys, nothing) = (Keys::new(&options.prefix, options.database, ""), Exchange::default());
    let mut commands = redis::pipe();
    commands.add_command(script::by_text(&keys, &nothing));
    for name in ASKED {
        commands.cmd("CONFIG").arg("GET").arg(name);
    }
    commands.cmd("PUBLISH").arg(&keys.channel).arg("");
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
        && let Some(Value::ServerError(error)) = replies.next()
    {
        return Err(said(options, &error, Sent::Nothing).error);
    }
    refuse_eviction(options, policy.as_deref())?;
    // Where it may not be asked, nothing is promised.
    let durable = appendonly.as_deref() == Some("yes") && appendfsync.as_deref() == Some("always");
    Ok(Settings { durable })
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
