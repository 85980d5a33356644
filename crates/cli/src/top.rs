//! The live view of a cluster: what is seen goes into a model, and the picture is drawn from that
//! alone.

mod draw;
mod model;
mod panes;
mod room;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use incumbent::{Cluster, OpenStore, clock};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};

use self::model::{Look, Model};
use crate::command::status::Snapshot;
use crate::exit::Outcome;
use crate::screen::{self, Input, Screen};
use crate::session::Session;

/// No longer than this between two looks, whatever became of the store's hints.
const LONGEST: Duration = Duration::from_secs(1);

/// No shorter than this, however many hints there are.
const SHORTEST: Duration = Duration::from_millis(200);

/// Shows the view until the user quits.
pub(crate) async fn run(session: &Session) -> Outcome {
    let cluster = session.place.cluster().await?;
    let store = session.place.open_to_look().await?;
    let mut model = Model::new(cluster.name(), &session.place.shown());
    // What can't be read at all is said plainly, before the terminal is taken.
    model.see(look(&cluster).await?);
    let mut screen = Screen::enter("`incumbent status` prints plain lines")?;
    let mut inputs = screen::listen()?;
    let (sender, mut looks) = mpsc::channel(1);
    let reader = Handle::current().spawn(follow(cluster, store, sender));
    loop {
        screen.draw(|frame| {
            model.fit(frame.area().height);
            draw::frame(frame, &model);
        })?;
        tokio::select! {
            seen = looks.recv(), if !model.paused => match seen {
                Some(Ok(look)) => model.see(look),
                Some(Err(why)) => model.trouble = Some(why),
                None => break,
            },
            input = inputs.recv() => match input {
                Some(Input::Key(key)) if !model.typing && screen::quits(key) => break,
                Some(Input::Key(key)) => model.press(key),
                Some(Input::Resized) => {}
                None => break,
            },
        }
    }
    reader.abort();
    Ok(())
}

async fn look(cluster: &Cluster) -> Outcome<Look> {
    Ok(Look { snapshot: Snapshot::read(cluster).await?, at_ms: clock::wall_ms() })
}

/// Looks when the store says that something may have changed, and once a second. While nobody
/// takes what was seen, it doesn't look.
async fn follow(cluster: Cluster, store: OpenStore, looks: mpsc::Sender<Result<Look, String>>) {
    let hints = Arc::new(Notify::new());
    let wake = Arc::clone(&hints);
    let _guard = store.hints(cluster.name(), Arc::new(move || wake.notify_one()));
    while let Ok(place) = looks.reserve().await {
        place.send(look(&cluster).await.map_err(|failure| failure.message));
        tokio::time::sleep(SHORTEST).await;
        tokio::select! {
            () = hints.notified() => {}
            () = tokio::time::sleep(LONGEST.saturating_sub(SHORTEST)) => {}
        }
    }
}
