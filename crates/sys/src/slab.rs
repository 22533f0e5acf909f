//! Things by number, where a number that is used again has another generation.

/// Entries named by 32-bit ids: 20 bits of place, 12 of generation. No id is zero.
#[derive(Debug)]
pub struct Slab<T> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
    limit: usize,
    used: usize,
}

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

const PLACE_BITS: u32 = 20;
const GENERATIONS: u32 = (1 << (32 - PLACE_BITS)) - 1;

impl<T> Slab<T> {
    /// For at most `limit` entries.
    pub fn new(limit: usize) -> Slab<T> {
        Slab { entries: Vec::new(), free: Vec::new(), limit: limit.min(1 << PLACE_BITS), used: 0 }
    }

    /// Adds an entry that knows its id; `None` if the slab is full.
    pub fn insert_with(&mut self, make: impl FnOnce(u32) -> T) -> Option<u32> {
        let place = match self.free.pop() {
            Some(place) => place,
            None if self.entries.len() < self.limit => {
                self.entries.push(Entry { generation: 1, value: None });
                self.entries.len() as u32 - 1
            }
            None => return None,
        };
        let entry = &mut self.entries[place as usize];
        let id = entry.generation << PLACE_BITS | place;
        entry.value = Some(make(id));
        self.used += 1;
        Some(id)
    }

    /// Adds an entry.
    pub fn insert(&mut self, value: T) -> Option<u32> {
        self.insert_with(|_| value)
    }

    /// The entry of an id.
    #[inline]
    pub fn get(&self, id: u32) -> Option<&T> {
        let entry = self.entries.get((id & ((1 << PLACE_BITS) - 1)) as usize)?;
        if entry.generation == id >> PLACE_BITS { entry.value.as_ref() } else { None }
    }

    /// The entry of an id, to change it.
    pub fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        self.get(id)?;
        self.entries[(id & ((1 << PLACE_BITS) - 1)) as usize].value.as_mut()
    }

    /// Takes an entry out.
    pub fn remove(&mut self, id: u32) -> Option<T> {
        self.get(id)?;
        let place = id & ((1 << PLACE_BITS) - 1);
        let entry = &mut self.entries[place as usize];
        entry.generation = entry.generation % GENERATIONS + 1;
        self.free.push(place);
        self.used -= 1;
        entry.value.take()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.used
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// All entries, with their ids.
    pub fn ids(&self) -> impl Iterator<Item = (u32, &T)> {
        let id = |(place, entry): (usize, &Entry<T>)| entry.generation << PLACE_BITS | place as u32;
        self.entries
            .iter()
            .enumerate()
            .filter_map(move |(place, entry)| Some((id((place, entry)), entry.value.as_ref()?)))
    }

    /// All entries.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().filter_map(|entry| entry.value.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_id_names_nothing() {
        let mut slab = Slab::new(2);
        let first = slab.insert('a').unwrap();
        assert_eq!(slab.get(first), Some(&'a'));
        assert_eq!(slab.remove(first), Some('a'));
        let second = slab.insert('b').unwrap();
        assert_ne!(first, second);
        assert_eq!((slab.get(first), slab.get(second), slab.get(0)), (None, Some(&'b'), None));
        slab.insert('c').unwrap();
        assert_eq!(slab.insert('d'), None);
        for _ in 0..10_000 {
            let id = slab.iter().count();
            assert_eq!(id, 2);
            let id = second;
            if slab.remove(id).is_some() {
                assert_ne!(slab.insert('e'), Some(0));
            }
        }
    }
}
