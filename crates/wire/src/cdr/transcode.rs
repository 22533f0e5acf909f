//! Values from one encoding to another, by their type code.

use super::type_code_cdr::{label_in, label_out};
use super::{Cdr, Decoder, Encoder, Error, LongDouble, TypeCode, WChar, WString, fixed};

/// Reads a value of this type and writes it in the format of `encoder`.
pub(super) fn copy(type_code: &TypeCode, decoder: &mut Decoder<'_>, encoder: &mut Encoder) -> Result<(), Error> {
    Copier { decoder, encoder, enclosing: Vec::new() }.value(type_code)
}

struct Copier<'a, 'b, 'c, 'e> {
    decoder: &'a mut Decoder<'b>,
    encoder: &'a mut Encoder<'e>,
    /// The structures and unions around the value, which recursion refers to.
    enclosing: Vec<&'c TypeCode>,
}

impl<'c> Copier<'_, '_, 'c, '_> {
    fn value(&mut self, type_code: &'c TypeCode) -> Result<(), Error> {
        match type_code {
            TypeCode::Null | TypeCode::Void => Ok(()),
            TypeCode::Short => self.plain::<i16>(),
            TypeCode::UShort => self.plain::<u16>(),
            TypeCode::Long => self.plain::<i32>(),
            TypeCode::ULong => self.plain::<u32>(),
            TypeCode::LongLong => self.plain::<i64>(),
            TypeCode::ULongLong => self.plain::<u64>(),
            TypeCode::Float => self.plain::<f32>(),
            TypeCode::Double => self.plain::<f64>(),
            TypeCode::LongDouble => self.plain::<LongDouble>(),
            TypeCode::Boolean => self.plain::<bool>(),
            TypeCode::Char => self.plain::<char>(),
            TypeCode::Octet => self.plain::<u8>(),
            TypeCode::WChar => self.plain::<WChar>(),
            TypeCode::TypeCode => self.plain::<TypeCode>(),
            TypeCode::String(bound) => {
                let text = String::decode(self.decoder)?;
                within(text.chars().count(), *bound)?;
                text.encode(self.encoder)
            }
            TypeCode::WString(bound) => {
                let text = WString::decode(self.decoder)?;
                within(text.chars().count(), *bound)?;
                text.encode(self.encoder)
            }
            TypeCode::Enum(it) => {
                let found = self.decoder.u32()?;
                if found as usize >= it.members.len() {
                    return Err(Error::Enumeration { enumeration: "the type of an any", found });
                }
                self.encoder.u32(found);
                Ok(())
            }
            TypeCode::Fixed { digits, .. } => {
                if *digits > fixed::MAX_DIGITS {
                    return Err(Error::TypeCode);
                }
                let octets = self.decoder.raw(usize::from(*digits) / 2 + 1)?;
                fixed::number_of(octets, *digits)?;
                self.encoder.raw(octets);
                Ok(())
            }
            TypeCode::Any => self.any(),
            TypeCode::ObjectReference(_) => self.reference(),
            TypeCode::Alias(it) => self.value(&it.original),
            TypeCode::Sequence(element, bound) => {
                let count = self.decoder.length(1)?;
                within(count, *bound)?;
                self.encoder.length(count)?;
                self.elements(element, count)
            }
            TypeCode::Array(element, count) => self.elements(element, *count as usize),
            TypeCode::Struct(it) | TypeCode::Exception(it) => {
                if matches!(type_code, TypeCode::Exception(_)) {
                    let id = self.decoder.identifier()?;
                    self.encoder.identifier(id)?;
                }
                self.within(type_code, |copier| {
                    it.members.iter().try_for_each(|member| copier.value(&member.type_code))
                })
            }
            TypeCode::Union(it) => {
                let label = label_in(&it.discriminator, self.decoder)?;
                label_out(&it.discriminator, label, self.encoder)?;
                let default = it.default.map(|index| &it.members[index]);
                let labelled = it
                    .members
                    .iter()
                    .enumerate()
                    .find(|(index, member)| member.label == label && it.default != Some(*index));
                match labelled.map(|(_, member)| member).or(default) {
                    Some(member) => self.within(type_code, |copier| copier.value(&member.member.type_code)),
                    None => Ok(()),
                }
            }
            TypeCode::Recursive(id) => {
                let depth = self.enclosing.iter().rposition(|each| each.id() == Some(id)).ok_or(Error::TypeCode)?;
                // What encloses the type it refers to is what encloses the value.
                let inner = self.enclosing.split_off(depth);
                let copied = self.value(inner[0]);
                self.enclosing.truncate(depth);
                self.enclosing.extend(inner);
                copied
            }
        }
    }

    fn plain<T: Cdr>(&mut self) -> Result<(), Error> {
        T::decode(self.decoder)?.encode(self.encoder)
    }

    fn elements(&mut self, element: &'c TypeCode, count: usize) -> Result<(), Error> {
        if *element == TypeCode::Octet {
            self.encoder.raw(self.decoder.raw(count)?);
            return Ok(());
        }
        self.nested(|copier| {
            for _ in 0..count {
                let begin = copier.decoder.position();
                copier.value(element)?;
                // A value without bytes could be repeated for ever.
                if copier.decoder.position() == begin {
                    return Err(Error::TypeCode);
                }
            }
            Ok(())
        })
    }

    fn any(&mut self) -> Result<(), Error> {
        let type_code = TypeCode::decode(self.decoder)?;
        type_code.encode(self.encoder)?;
        let encoder = &mut *self.encoder;
        self.decoder.nested(|decoder| copy(&type_code, decoder, encoder))
    }

    fn reference(&mut self) -> Result<(), Error> {
        let id = self.decoder.identifier()?;
        self.encoder.identifier(id)?;
        let profiles = self.decoder.length(8)?;
        self.encoder.length(profiles)?;
        for _ in 0..profiles {
            let tag = self.decoder.u32()?;
            self.encoder.u32(tag);
            let data = self.decoder.octets()?;
            self.encoder.octets(data)?;
        }
        Ok(())
    }

    fn within(
        &mut self,
        type_code: &'c TypeCode,
        copy: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.enclosing.push(type_code);
        let copied = self.nested(copy);
        self.enclosing.pop();
        copied
    }

    fn nested(&mut self, copy: impl FnOnce(&mut Self) -> Result<(), Error>) -> Result<(), Error> {
        self.decoder.enter()?;
        let copied = copy(self);
        self.decoder.leave();
        copied
    }
}

fn within(found: usize, bound: u32) -> Result<(), Error> {
    match bound as usize {
        limit if bound != 0 && found > limit => Err(Error::Bound { limit, found }),
        _ => Ok(()),
    }
}
