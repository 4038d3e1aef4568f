//! The running state of `sum` and `avg` over integers and `numeric`.

use super::*;

/// An exact sum with the count of its terms. The scale is the greatest met, as PostgreSQL prints sums.
#[derive(Clone, Debug, Default)]
pub struct NumericSum {
    /// What does not overflow, at `scale`.
    low: i128,
    scale: u16,
    /// What overflowed `low`, and terms of any size.
    high: Option<Box<Numeric>>,
    nans: u64,
    infinities: u64,
    neg_infinities: u64,
    count: u64,
}

impl NumericSum {
    /// Terms added, of any kind.
    pub fn count(&self) -> u64 {
        self.count
    }

    #[inline]
    pub fn add_i64(&mut self, value: i64) -> Result<()> {
        self.add_scaled(i128::from(value), 0)
    }

    /// Adds `coefficient / 10^scale`.
    #[inline]
    pub fn add_scaled(&mut self, coefficient: i128, scale: u16) -> Result<()> {
        self.count += 1;
        if scale == self.scale
            && let Some(sum) = self.low.checked_add(coefficient)
        {
            self.low = sum;
            return Ok(());
        }
        self.add_finite(&Numeric::from_scaled(coefficient, scale))
    }

    pub fn add(&mut self, value: &Numeric) -> Result<()> {
        match value.kind {
            Kind::Small(coefficient) => return self.add_scaled(coefficient, value.scale),
            Kind::Big(_) => self.add_finite(value)?,
            Kind::Nan => self.nans += 1,
            Kind::Infinity => self.infinities += 1,
            Kind::NegInfinity => self.neg_infinities += 1,
        }
        self.count += 1;
        Ok(())
    }

    fn add_finite(&mut self, value: &Numeric) -> Result<()> {
        let low = Numeric::from_scaled(self.low, self.scale);
        let sum = low.add(value)?;
        self.scale = sum.scale;
        match sum.kind {
            Kind::Small(low) => self.low = low,
            _ => {
                self.low = 0;
                let high = match &self.high {
                    Some(high) => high.add(&sum)?,
                    None => sum,
                };
                self.high = Some(Box::new(high));
            }
        }
        Ok(())
    }

    pub fn merge(&mut self, other: &NumericSum) -> Result<()> {
        self.add_finite(&Numeric::from_scaled(other.low, other.scale))?;
        if let Some(high) = &other.high {
            self.add_finite(high)?;
        }
        self.nans += other.nans;
        self.infinities += other.infinities;
        self.neg_infinities += other.neg_infinities;
        self.count += other.count;
        Ok(())
    }

    /// Takes a term away again (moving windows). The scale stays.
    pub fn remove(&mut self, value: &Numeric) -> Result<()> {
        match value.kind {
            Kind::Small(_) | Kind::Big(_) => self.add_finite(&-value.clone())?,
            Kind::Nan => self.nans -= 1,
            Kind::Infinity => self.infinities -= 1,
            Kind::NegInfinity => self.neg_infinities -= 1,
        }
        self.count -= 1;
        Ok(())
    }

    /// `None` without terms.
    pub fn sum(&self) -> Result<Option<Numeric>> {
        if self.count == 0 {
            return Ok(None);
        }
        let sum = if self.nans > 0 || (self.infinities > 0 && self.neg_infinities > 0) {
            Numeric::NAN
        } else if self.infinities > 0 {
            Numeric::INFINITY
        } else if self.neg_infinities > 0 {
            Numeric::NEG_INFINITY
        } else {
            let low = Numeric::from_scaled(self.low, self.scale);
            match &self.high {
                Some(high) => high.add(&low)?,
                None => low,
            }
        };
        Ok(Some(sum))
    }

    /// `None` without terms.
    pub fn avg(&self) -> Result<Option<Numeric>> {
        match self.sum()? {
            Some(sum) => Ok(Some(sum.div(&Numeric::from(self.count))?)),
            None => Ok(None),
        }
    }

    /// Bytes held beyond the struct itself.
    pub fn heap_bytes(&self) -> usize {
        self.high.as_ref().map_or(0, |high| {
            size_of::<Numeric>() + if let Kind::Big(value) = &high.kind { value.bits() as usize / 8 } else { 0 }
        })
    }

    /// Appends the state for another node or a spill file; [`NumericSum::from_bytes`] reads it.
    pub fn to_bytes(&self, out: &mut Vec<u8>) {
        for count in [self.count, self.nans, self.infinities, self.neg_infinities] {
            out.extend_from_slice(&count.to_le_bytes());
        }
        out.extend_from_slice(&self.low.to_le_bytes());
        out.extend_from_slice(&self.scale.to_le_bytes());
        if let Some(high) = &self.high {
            high.encode(out);
        }
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<NumericSum> {
        let damaged = || Error::new("XX001", format!("aggregate state of {} bytes is damaged", bytes.len()));
        let (fixed, high) = bytes.split_at_checked(50).ok_or_else(damaged)?;
        let count = |at: usize| u64::from_le_bytes(fixed[at..at + 8].try_into().expect("8 bytes"));
        let scale = u16::from_le_bytes(fixed[48..50].try_into().expect("2 bytes"));
        if i32::from(scale) > SCALE_MAX {
            return Err(damaged());
        }
        Ok(NumericSum {
            count: count(0),
            nans: count(8),
            infinities: count(16),
            neg_infinities: count(24),
            low: i128::from_le_bytes(fixed[32..48].try_into().expect("16 bytes")),
            scale,
            high: if high.is_empty() { None } else { Some(Box::new(Numeric::decode(high)?)) },
        })
    }
}
