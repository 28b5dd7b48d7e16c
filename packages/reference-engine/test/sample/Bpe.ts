/**
 * GPT-2's expression that splits text into words before merging. The tokenizer that reads the file uses the same one.
 */
const words = /'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu

/** The character of each byte in a byte-level vocabulary (GPT-2's table). */
export const byteCharacters: ReadonlyArray<string> = (() => {
  let next = 256
  return Array.from({ length: 256 }, (_, byte) => {
    const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174
    return String.fromCodePoint(printable ? byte : next++)
  })
})()

interface Word {
  pieces: ReadonlyArray<string>
  count: number
}

const merged = (pieces: ReadonlyArray<string>, left: string, right: string): ReadonlyArray<string> => {
  const out: Array<string> = []
  for (let i = 0; i < pieces.length; i++) {
    const piece = pieces[i] ?? ""
    if (piece === left && pieces[i + 1] === right) {
      out.push(left + right)
      i++
    } else {
      out.push(piece)
    }
  }
  return out
}

/**
 * Learns `count` merges: the most frequent pair each time, and among equals the first in code-unit order, so that every
 * machine learns the same merges.
 */
export const learnMerges = (text: string, count: number): ReadonlyArray<readonly [string, string]> => {
  const counted = new Map<string, Word>()
  for (const [word] of text.matchAll(words)) {
    const known = counted.get(word)
    if (known !== undefined) known.count++
    else counted.set(word, { pieces: [...Buffer.from(word, "utf8")].map((byte) => byteCharacters[byte] ?? ""), count: 1 })
  }
  const merges: Array<readonly [string, string]> = []
  while (merges.length < count) {
    const pairs = new Map<string, number>()
    for (const { count: times, pieces } of counted.values()) {
      for (let i = 0; i + 1 < pieces.length; i++) {
        const pair = `${pieces[i]}\u0000${pieces[i + 1]}`
        pairs.set(pair, (pairs.get(pair) ?? 0) + times)
      }
    }
    let best = ""
    let most = 0
    for (const [pair, times] of pairs) {
      if (times > most || (times === most && pair < best)) {
        best = pair
        most = times
      }
    }
    if (most === 0) throw new Error(`the text holds only ${merges.length} merges`)
    const [left = "", right = ""] = best.split("\u0000")
    merges.push([left, right])
    for (const word of counted.values()) word.pieces = merged(word.pieces, left, right)
  }
  return merges
}

/** Splits a text into pieces by the merges, in the order in which they were learned. */
export const applyMerges = (text: string, merges: ReadonlyArray<readonly [string, string]>): ReadonlyArray<string> =>
  [...text.matchAll(words)].flatMap(([word]) =>
    merges.reduce<ReadonlyArray<string>>(
      (pieces, [left, right]) => (pieces.length > 1 && pieces.includes(left) ? merged(pieces, left, right) : pieces),
      [...Buffer.from(word, "utf8")].map((byte) => byteCharacters[byte] ?? "")
    )
  )
