/** FNV-1a of a text's UTF-16 units, 32 bits. */
export const hashOf = (text: string): number => {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  return hash >>> 0
}

/**
 * Score of a member for a key, 32 bits: the member with the highest score is preferred. The finalizer of MurmurHash3
 * gives similar hashes unlike scores.
 */
export const scoreOf = (key: number, member: number): number => {
  let mixed = key ^ Math.imul(member, 0x9e3779b1)
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}
