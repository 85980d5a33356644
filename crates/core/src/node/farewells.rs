//! Former incarnations, which are closed once their work has stopped.

use super::{Expect, Lane, Moment, Mutant, Node, Purpose, Read, keys};
use crate::farewell;
use crate::records::Content;

impl Node {
    /// Lets former incarnations go whose work has stopped.
    pub(super) fn release_farewells(&mut self, now: Moment) {
        for farewell in self.farewells.iter_mut().filter(|farewell| farewell.is_working()) {
            let works = self.running.values().any(|(member, _)| *member == farewell.id);
            if !works || self.config.planted.is(Mutant::LeftBeforeStopped) {
                farewell.stopped(now);
            }
        }
    }

    pub(super) fn drive_farewells(&mut self, now: Moment) {
        let mut farewells = std::mem::take(&mut self.farewells);
        for farewell in &mut farewells {
            let id = farewell.id.clone();
            match farewell.step(now) {
                None => {}
                Some(farewell::Step::Close(record, version)) => {
                    let expect = Expect::Version(version);
                    let put = self.put(keys::member(&id), expect, record.bytes(), true);
                    let purpose = Purpose::FarewellClose(id);
                    self.send(now, Lane::Change, vec![put], Vec::new(), purpose);
                }
                Some(farewell::Step::Read) => {
                    let reads = vec![Read::Key { key: keys::member(&id), unless: None }];
                    let purpose = Purpose::FarewellRead(id);
                    self.send(now, Lane::Change, Vec::new(), reads, purpose);
                }
            }
        }
        farewells.retain(|farewell| !farewell.is_over(now));
        self.farewells = farewells;
    }
}
