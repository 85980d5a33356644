//! How the parts of the view share the screen.

use super::model::Pane;

/// The lines that a part has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Room {
    /// In all.
    pub(super) lines: u16,
    /// Those that are no rows: the title, and the heads of columns.
    above: u16,
}

impl Room {
    /// How many rows fit.
    pub(super) fn rows(&self) -> usize {
        usize::from(self.lines.saturating_sub(self.above))
    }
}

/// Shares lines among parts with so many rows. Each has at least one row; then the one in focus
/// gets what it needs, then the others in turn, and what nobody needs is the last one's. A screen
/// on which not all have a row shows the one in focus.
pub(super) fn share(lines: u16, counts: [usize; 4], focus: Pane) -> [Room; 4] {
    let above = [2, 2, 2, 1];
    let mut rooms = above.map(|above| Room { lines: above + 1, above });
    let Some(mut left) = lines.checked_sub(rooms.iter().map(|room| room.lines).sum()) else {
        for (room, pane) in rooms.iter_mut().zip(Pane::ALL) {
            room.lines = if pane == focus { lines } else { 0 };
        }
        return rooms;
    };
    let wants = |room: &Room, count: usize| room.rows() < count;
    if let Some((room, count)) = rooms.iter_mut().zip(counts).nth(focus.place()) {
        while left > 0 && wants(room, count) {
            room.lines += 1;
            left -= 1;
        }
    }
    while left > 0 && rooms.iter().zip(counts).any(|(room, count)| wants(room, count)) {
        for (room, count) in rooms.iter_mut().zip(counts) {
            if left > 0 && wants(room, count) {
                room.lines += 1;
                left -= 1;
            }
        }
    }
    if let Some(last) = rooms.last_mut() {
        last.lines += left;
    }
    rooms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(lines: u16, counts: [usize; 4], focus: Pane) -> [usize; 4] {
        let rooms = share(lines, counts, focus);
        assert_eq!(rooms.iter().map(|room| room.lines).sum::<u16>(), lines, "all are used");
        rooms.map(|room| room.rows())
    }

    #[test]
    fn all_have_what_they_need_if_it_fits() {
        assert_eq!(rows(22, [3, 2, 4, 5], Pane::Members), [3, 2, 4, 6]);
    }

    #[test]
    fn the_one_in_focus_comes_first_and_nobody_goes_without() {
        assert_eq!(rows(22, [100, 100, 100, 100], Pane::Duties), [1, 1, 12, 1]);
        assert_eq!(rows(22, [3, 100, 100, 100], Pane::Members), [3, 4, 4, 4]);
    }

    #[test]
    fn a_tiny_screen_shows_one_part() {
        assert_eq!(rows(6, [9, 9, 9, 9], Pane::Leases), [0, 4, 0, 0]);
        assert_eq!(rows(0, [9, 9, 9, 9], Pane::Leases), [0, 0, 0, 0]);
    }
}
