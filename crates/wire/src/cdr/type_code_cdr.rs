//! The encoding of type codes (CORBA 3.3 part 2 §9.3.5.1).
//!
//! A type code is a kind and its parameters, in an encapsulation if they are more than a number. A
//! type that occurs in itself, or again, may be an indirection: a marker in the place of the kind, and
//! how far back the type code begins.

use std::sync::Arc;

use super::type_code::{Alias, Enumeration, Member, Named, Structure, Union, UnionMember};
use super::{Cdr, Decoder, Encoder, Error, TypeCode, WChar};

/// The kinds (CORBA 3.3 part 2 table 9.2).
mod kind {
    pub(super) const ANY: u32 = 11;
    pub(super) const TYPE_CODE: u32 = 12;
    pub(super) const OBJECT_REFERENCE: u32 = 14;
    pub(super) const STRUCT: u32 = 15;
    pub(super) const UNION: u32 = 16;
    pub(super) const ENUM: u32 = 17;
    pub(super) const STRING: u32 = 18;
    pub(super) const SEQUENCE: u32 = 19;
    pub(super) const ARRAY: u32 = 20;
    pub(super) const ALIAS: u32 = 21;
    pub(super) const EXCEPTION: u32 = 22;
    pub(super) const WSTRING: u32 = 27;
    pub(super) const FIXED: u32 = 28;
    pub(super) const INDIRECTION: u32 = 0xffff_ffff;
}

/// The kinds that are nothing but their number.
const SIMPLE: [(u32, TypeCode); 17] = [
    (0, TypeCode::Null),
    (1, TypeCode::Void),
    (2, TypeCode::Short),
    (3, TypeCode::Long),
    (4, TypeCode::UShort),
    (5, TypeCode::ULong),
    (6, TypeCode::Float),
    (7, TypeCode::Double),
    (8, TypeCode::Boolean),
    (9, TypeCode::Char),
    (10, TypeCode::Octet),
    (kind::ANY, TypeCode::Any),
    (kind::TYPE_CODE, TypeCode::TypeCode),
    (23, TypeCode::LongLong),
    (24, TypeCode::ULongLong),
    (25, TypeCode::LongDouble),
    (26, TypeCode::WChar),
];

/// How many nodes indirections may add to a type code. Each is only eight bytes on the wire, so that
/// a short message could otherwise describe a type of any size.
const MAX_INDIRECT_NODES: usize = 2_000;

/// The shortest element of a list in a type code: an empty string.
const SMALLEST_MEMBER: usize = 4;

impl Cdr for TypeCode {
    const MIN_LEN: usize = 4;

    fn encode(&self, encoder: &mut Encoder) -> Result<(), Error> {
        Writer { open: Vec::new() }.type_code(self, encoder)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Error> {
        Reader { seen: Vec::new(), nodes: 0 }.type_code(decoder)
    }
}

struct Writer {
    /// Where the enclosing structures and unions begin.
    open: Vec<(Arc<str>, usize)>,
}

impl Writer {
    fn type_code(&mut self, value: &TypeCode, encoder: &mut Encoder) -> Result<(), Error> {
        encoder.align(4);
        let begin = encoder.position();
        match value {
            TypeCode::ObjectReference(named) => {
                encoder.u32(kind::OBJECT_REFERENCE);
                encapsulated(encoder, |encoder| named_out(named, encoder))
            }
            TypeCode::Struct(it) => self.structure(kind::STRUCT, it, begin, encoder),
            TypeCode::Exception(it) => self.structure(kind::EXCEPTION, it, begin, encoder),
            TypeCode::Union(it) => self.union(it, begin, encoder),
            TypeCode::Enum(it) => {
                encoder.u32(kind::ENUM);
                encapsulated(encoder, |encoder| {
                    named_out(&it.named, encoder)?;
                    encoder.length(it.members.len())?;
                    it.members.iter().try_for_each(|member| encoder.identifier(member.as_bytes()))
                })
            }
            TypeCode::String(bound) => {
                encoder.u32(kind::STRING);
                encoder.u32(*bound);
                Ok(())
            }
            TypeCode::WString(bound) => {
                encoder.u32(kind::WSTRING);
                encoder.u32(*bound);
                Ok(())
            }
            TypeCode::Sequence(element, count) => self.list(kind::SEQUENCE, element, *count, encoder),
            TypeCode::Array(element, count) => self.list(kind::ARRAY, element, *count, encoder),
            TypeCode::Alias(it) => {
                encoder.u32(kind::ALIAS);
                encapsulated(encoder, |encoder| {
                    named_out(&it.named, encoder)?;
                    self.type_code(&it.original, encoder)
                })
            }
            TypeCode::Fixed { digits, scale } => {
                encoder.u32(kind::FIXED);
                encoder.u16(*digits);
                encoder.i16(*scale);
                Ok(())
            }
            TypeCode::Recursive(id) => {
                let (_, target) = self.open.iter().rev().find(|(open, _)| open == id).ok_or(Error::TypeCode)?;
                encoder.u32(kind::INDIRECTION);
                let distance = encoder.position() - target;
                encoder.i32(-i32::try_from(distance).map_err(|_| Error::Length { found: distance })?);
                Ok(())
            }
            simple => {
                let (number, _) = SIMPLE.iter().find(|(_, code)| code == simple).ok_or(Error::TypeCode)?;
                encoder.u32(*number);
                Ok(())
            }
        }
    }

    fn structure(&mut self, kind: u32, it: &Structure, begin: usize, encoder: &mut Encoder) -> Result<(), Error> {
        encoder.u32(kind);
        self.open.push((it.named.id.clone(), begin));
        encapsulated(encoder, |encoder| {
            named_out(&it.named, encoder)?;
            encoder.length(it.members.len())?;
            it.members.iter().try_for_each(|member| self.member(member, encoder))
        })?;
        self.open.pop();
        Ok(())
    }

    fn union(&mut self, it: &Union, begin: usize, encoder: &mut Encoder) -> Result<(), Error> {
        encoder.u32(kind::UNION);
        self.open.push((it.named.id.clone(), begin));
        encapsulated(encoder, |encoder| {
            named_out(&it.named, encoder)?;
            self.type_code(&it.discriminator, encoder)?;
            encoder.i32(it.default.map_or(-1, |index| i32::try_from(index).unwrap_or(-1)));
            encoder.length(it.members.len())?;
            it.members.iter().try_for_each(|member| {
                label_out(&it.discriminator, member.label, encoder)?;
                self.member(&member.member, encoder)
            })
        })?;
        self.open.pop();
        Ok(())
    }

    fn member(&mut self, member: &Member, encoder: &mut Encoder) -> Result<(), Error> {
        encoder.identifier(member.name.as_bytes())?;
        self.type_code(&member.type_code, encoder)
    }

    fn list(&mut self, kind: u32, element: &TypeCode, count: u32, encoder: &mut Encoder) -> Result<(), Error> {
        encoder.u32(kind);
        encapsulated(encoder, |encoder| {
            self.type_code(element, encoder)?;
            encoder.u32(count);
            Ok(())
        })
    }
}

fn encapsulated(encoder: &mut Encoder, write: impl FnOnce(&mut Encoder) -> Result<(), Error>) -> Result<(), Error> {
    let encapsulation = encoder.begin_encapsulation();
    write(encoder)?;
    encoder.end_encapsulation(encapsulation)
}

fn named_out(named: &Named, encoder: &mut Encoder) -> Result<(), Error> {
    encoder.identifier(named.id.as_bytes())?;
    encoder.identifier(named.name.as_bytes())
}

/// A type code that has been met in this message.
enum Seen {
    /// It is being read; indirections to it are recursion.
    Open(Arc<str>),
    /// It has been read.
    Done(TypeCode),
}

struct Reader {
    seen: Vec<(usize, Seen)>,
    nodes: usize,
}

impl Reader {
    fn type_code(&mut self, decoder: &mut Decoder<'_>) -> Result<TypeCode, Error> {
        let number = decoder.u32()?;
        let begin = decoder.position() - 4;
        if let Some((_, simple)) = SIMPLE.iter().find(|(each, _)| *each == number) {
            return Ok(simple.clone());
        }
        let type_code = match number {
            kind::STRING => TypeCode::String(decoder.u32()?),
            kind::WSTRING => TypeCode::WString(decoder.u32()?),
            kind::FIXED => TypeCode::Fixed { digits: decoder.u16()?, scale: decoder.i16()? },
            kind::INDIRECTION => return self.indirection(decoder),
            kind::OBJECT_REFERENCE => TypeCode::ObjectReference(Arc::new(named_in(&mut decoder.encapsulation()?)?)),
            kind::STRUCT => TypeCode::Struct(self.structure(begin, decoder)?),
            kind::EXCEPTION => TypeCode::Exception(self.structure(begin, decoder)?),
            kind::UNION => TypeCode::Union(self.union(begin, decoder)?),
            kind::ENUM => {
                let mut inner = decoder.encapsulation()?;
                let named = named_in(&mut inner)?;
                let count = inner.length(SMALLEST_MEMBER)?;
                let members = (0..count).map(|_| text(&mut inner)).collect::<Result<_, _>>()?;
                TypeCode::Enum(Arc::new(Enumeration { named, members }))
            }
            kind::SEQUENCE => {
                let mut inner = decoder.encapsulation()?;
                TypeCode::Sequence(Arc::new(self.type_code(&mut inner)?), inner.u32()?)
            }
            kind::ARRAY => {
                let mut inner = decoder.encapsulation()?;
                TypeCode::Array(Arc::new(self.type_code(&mut inner)?), inner.u32()?)
            }
            kind::ALIAS => {
                let mut inner = decoder.encapsulation()?;
                let named = named_in(&mut inner)?;
                TypeCode::Alias(Arc::new(Alias { named, original: self.type_code(&mut inner)? }))
            }
            found => return Err(Error::Kind { found }),
        };
        self.seen.push((begin, Seen::Done(type_code.clone())));
        Ok(type_code)
    }

    fn structure(&mut self, begin: usize, decoder: &mut Decoder<'_>) -> Result<Arc<Structure>, Error> {
        let mut inner = decoder.encapsulation()?;
        let named = named_in(&mut inner)?;
        let mark = self.open(begin, &named);
        let count = inner.length(SMALLEST_MEMBER)?;
        let members = (0..count).map(|_| self.member(&mut inner)).collect::<Result<_, _>>()?;
        self.close(mark);
        Ok(Arc::new(Structure { named, members }))
    }

    fn union(&mut self, begin: usize, decoder: &mut Decoder<'_>) -> Result<Arc<Union>, Error> {
        let mut inner = decoder.encapsulation()?;
        let named = named_in(&mut inner)?;
        let mark = self.open(begin, &named);
        let discriminator = self.type_code(&mut inner)?;
        let default = usize::try_from(inner.i32()?).ok();
        let count = inner.length(SMALLEST_MEMBER)?;
        let members = (0..count)
            .map(|_| {
                let label = label_in(&discriminator, &mut inner)?;
                Ok(UnionMember { label, member: self.member(&mut inner)? })
            })
            .collect::<Result<Vec<_>, Error>>()?;
        self.close(mark);
        if default.is_some_and(|index| index >= members.len()) {
            return Err(Error::TypeCode);
        }
        Ok(Arc::new(Union { named, discriminator, members, default }))
    }

    fn member(&mut self, decoder: &mut Decoder<'_>) -> Result<Member, Error> {
        Ok(Member { name: text(decoder)?, type_code: self.type_code(decoder)? })
    }

    fn open(&mut self, begin: usize, named: &Named) -> usize {
        self.seen.push((begin, Seen::Open(named.id.clone())));
        self.seen.len() - 1
    }

    /// The type is read: what was open is not any more, and its whole takes its place.
    fn close(&mut self, mark: usize) {
        self.seen.remove(mark);
    }

    fn indirection(&mut self, decoder: &mut Decoder<'_>) -> Result<TypeCode, Error> {
        let distance = decoder.i32()?;
        let target = decoder.position() as i64 - 4 + i64::from(distance);
        let seen = self.seen.iter().rev().find(|(begin, _)| *begin as i64 == target);
        match seen {
            Some((_, Seen::Open(id))) if !id.is_empty() => Ok(TypeCode::Recursive(id.clone())),
            Some((_, Seen::Done(type_code))) => {
                self.nodes += nodes_of(type_code);
                if self.nodes > MAX_INDIRECT_NODES { Err(Error::Depth) } else { Ok(type_code.clone()) }
            }
            _ => Err(Error::Indirection { target }),
        }
    }
}

/// How many type codes this one consists of. Whoever calls has bounded them before.
fn nodes_of(type_code: &TypeCode) -> usize {
    1 + match type_code {
        TypeCode::Struct(it) | TypeCode::Exception(it) => {
            it.members.iter().map(|member| nodes_of(&member.type_code)).sum()
        }
        TypeCode::Union(it) => it.members.iter().map(|member| nodes_of(&member.member.type_code)).sum(),
        TypeCode::Enum(it) => it.members.len(),
        TypeCode::Sequence(element, _) | TypeCode::Array(element, _) => nodes_of(element),
        TypeCode::Alias(it) => nodes_of(&it.original),
        _ => 0,
    }
}

fn named_in(decoder: &mut Decoder<'_>) -> Result<Named, Error> {
    Ok(Named { id: text(decoder)?, name: text(decoder)? })
}

fn text(decoder: &mut Decoder<'_>) -> Result<Arc<str>, Error> {
    std::str::from_utf8(decoder.identifier()?).map(Arc::from).map_err(|_| Error::Text { code_set: "UTF-8" })
}

/// Reads a discriminator as a number.
pub(super) fn label_in(discriminator: &TypeCode, decoder: &mut Decoder<'_>) -> Result<i64, Error> {
    Ok(match discriminator.unaliased() {
        TypeCode::Short => decoder.i16()?.into(),
        TypeCode::UShort => decoder.u16()?.into(),
        TypeCode::Long => decoder.i32()?.into(),
        TypeCode::ULong | TypeCode::Enum(_) => decoder.u32()?.into(),
        TypeCode::LongLong => decoder.i64()?,
        TypeCode::ULongLong => decoder.u64()?.cast_signed(),
        TypeCode::Boolean => decoder.bool()?.into(),
        TypeCode::Char | TypeCode::Octet => decoder.u8()?.into(),
        TypeCode::WChar => u32::from(WChar::decode(decoder)?.0).into(),
        _ => return Err(Error::TypeCode),
    })
}

/// Writes a discriminator that is given as a number.
pub(super) fn label_out(discriminator: &TypeCode, label: i64, encoder: &mut Encoder) -> Result<(), Error> {
    match discriminator.unaliased() {
        TypeCode::Short | TypeCode::UShort => encoder.u16(label as u16),
        TypeCode::Long | TypeCode::ULong | TypeCode::Enum(_) => encoder.u32(label as u32),
        TypeCode::LongLong | TypeCode::ULongLong => encoder.i64(label),
        TypeCode::Boolean | TypeCode::Char | TypeCode::Octet => encoder.u8(label as u8),
        TypeCode::WChar => {
            let value = u32::try_from(label).ok().and_then(char::from_u32).ok_or(Error::TypeCode)?;
            WChar(value).encode(encoder)?;
        }
        _ => return Err(Error::TypeCode),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{ByteOrder, Format};
    use super::*;

    fn round_trip(type_code: &TypeCode) {
        for order in [ByteOrder::Big, ByteOrder::Little] {
            let format = Format { order, ..Format::NATIVE };
            let mut encoder = Encoder::new(Vec::new(), format);
            // An indirection counts from its own place, wherever the type code lies.
            encoder.u8(0);
            type_code.encode(&mut encoder).unwrap();
            let mut decoder = Decoder::new(encoder.bytes(), format);
            decoder.u8().unwrap();
            assert_eq!(TypeCode::decode(&mut decoder).as_ref(), Ok(type_code));
            assert_eq!(decoder.remaining(), 0);
        }
    }

    #[test]
    fn every_kind_comes_back() {
        for (_, simple) in &SIMPLE {
            round_trip(simple);
        }
        round_trip(&TypeCode::String(7));
        round_trip(&TypeCode::Fixed { digits: 5, scale: -2 });
        round_trip(&TypeCode::reference("IDL:Echo:1.0", "Echo"));
        let shade = TypeCode::enumeration("IDL:Shade:1.0", "Shade", &["light", "dark"]);
        round_trip(&shade);
        round_trip(&TypeCode::Array(Arc::new(TypeCode::Sequence(Arc::new(shade.clone()), 3)), 4));
        let members = vec![(0, "a", TypeCode::Long), (1, "b", TypeCode::WString(0))];
        round_trip(&TypeCode::union("IDL:U:1.0", "U", shade, Some(1), members));
        let tree = TypeCode::Sequence(Arc::new(TypeCode::Recursive("IDL:Tree:1.0".into())), 0);
        round_trip(&TypeCode::structure("IDL:Tree:1.0", "Tree", vec![("children", tree)]));
    }

    #[test]
    fn indirections_lead_back_or_nowhere() {
        let format = Format { order: ByteOrder::Big, ..Format::NATIVE };
        for distance in [-4i32, 0, 4, i32::MIN, i32::MAX] {
            let mut bytes = vec![0xff; 4];
            bytes.extend_from_slice(&distance.to_be_bytes());
            let found = TypeCode::decode(&mut Decoder::new(&bytes, format));
            assert_eq!(found, Err(Error::Indirection { target: 4 + i64::from(distance) }));
        }
    }

    #[test]
    fn a_short_message_cannot_describe_a_huge_type() {
        // A structure whose members each hold the one before twice.
        let format = Format::NATIVE;
        let mut encoder = Encoder::new(Vec::new(), format);
        encoder.u32(kind::STRUCT);
        let outer = encoder.begin_encapsulation();
        named_out(&Named::new("IDL:Outer:1.0", ""), &mut encoder).unwrap();
        encoder.u32(60);
        let mut last = None;
        for _ in 0..60 {
            encoder.identifier(b"").unwrap();
            encoder.align(4);
            let begin = encoder.position();
            encoder.u32(kind::STRUCT);
            let inner = encoder.begin_encapsulation();
            named_out(&Named::new("", ""), &mut encoder).unwrap();
            encoder.u32(2);
            for _ in 0..2 {
                encoder.identifier(b"").unwrap();
                match last {
                    None => encoder.u32(3),
                    Some(target) => {
                        encoder.u32(kind::INDIRECTION);
                        let distance = encoder.position() - target;
                        encoder.i32(-(distance as i32));
                    }
                }
            }
            encoder.end_encapsulation(inner).unwrap();
            last = Some(begin);
        }
        encoder.end_encapsulation(outer).unwrap();
        assert_eq!(TypeCode::decode(&mut Decoder::new(encoder.bytes(), format)), Err(Error::Depth));
    }
}
