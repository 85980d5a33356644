/// Milliseconds in order.
pub(crate) struct Spread(Vec<f64>);

impl Spread {
    pub(crate) fn new(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    /// The value below which this share of all values is.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        let at = (last as f64 * share).round() as usize;
        self.0.get(at.min(last)).copied().unwrap_or(f64::NAN)
    }

    /// How many are above this.
    pub(crate) fn above(&self, limit: f64) -> usize {
        self.0.iter().filter(|value| **value > limit).count()
    }

    pub(crate) fn print(&self, what: &str) {
        let [median, p90, p99, most] = [0.5, 0.9, 0.99, 1.0].map(|share| self.quantile(share));
        let times = self.0.len();
        println!(
            "{what:<48} median {median:7.2} ms  p90 {p90:7.2}  p99 {p99:7.2}  max {most:7.2}  ({times} times)"
        );
    }
}
