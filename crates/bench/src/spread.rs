//! Medians and other quantiles.

/// Values in order.
#[derive(Clone, Debug)]
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

    pub(crate) fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// How many are above this.
    pub(crate) fn above(&self, limit: f64) -> usize {
        self.0.iter().filter(|value| **value > limit).count()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let spread = Spread::new((1..=101).rev().map(f64::from).collect());
        assert_eq!(
            (spread.median(), spread.quantile(0.99), spread.quantile(1.0)),
            (51.0, 100.0, 101.0)
        );
        assert!(Spread::new(Vec::new()).median().is_nan());
    }
}
