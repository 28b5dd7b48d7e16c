/** Random numbers from a seed (mulberry32), so that failures are reproducible. */
export const randomFrom = (seed: number) => {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let value = Math.imul(state ^ (state >>> 15), 1 | state)
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value
    return ((value ^ (value >>> 14)) >>> 0) / 4_294_967_296
  }
  const below = (limit: number) => Math.floor(next() * limit)
  const pick = <A>(items: ReadonlyArray<A>): A => {
    const item = items[below(items.length)]
    if (item === undefined) throw new Error("nothing to pick from")
    return item
  }
  return { below, pick }
}
export type Random = ReturnType<typeof randomFrom>

const pieces = [
  "0",
  "-1",
  "-0",
  "1e9",
  "1.0",
  "9007199254740993",
  "18446744073709551616",
  "1e999",
  "NaN",
  "null",
  "true",
  "[]",
  "{}",
  '"',
  ",",
  ":",
  "[",
  "]",
  "{",
  "}",
  "\\",
  "\\u0000",
  "\\ud800",
  "\u0000",
  "\ufeff",
  "é",
  "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
  '"__proto__":',
  '"constructor":',
  '"data_offsets":[0,0]',
  '"dtype":"U8"',
  '"shape":[]',
  '"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},',
  '"../../etc/passwd"',
  '"model.safetensors"',
  '"auto_map":{}',
  '"weight_map":{',
  '"__metadata__":{}',
  "99999999",
  "\ud83d\ude00"
]

/** Changes bytes in one to four places: bits, pieces of JSON, numbers, truncation, repetition and swaps. */
export const mutate = (bytes: Uint8Array, random: Random): Uint8Array => {
  let now = Buffer.from(bytes)
  for (let round = 1 + random.below(4); round > 0; round--) {
    const at = random.below(now.length + 1)
    const length = random.below(Math.min(40, now.length - at + 1))
    const [before, after] = [now.subarray(0, at), now.subarray(at)]
    switch (random.below(8)) {
      case 0:
        if (at < now.length) now[at] = random.below(256)
        break
      case 1:
        if (at < now.length) now[at] = (now[at] ?? 0) ^ (1 << random.below(8))
        break
      case 2:
        now = Buffer.concat([before, Buffer.from(random.pick(pieces)), after])
        break
      case 3:
        now = Buffer.concat([before, Buffer.from(random.pick(pieces)), after.subarray(length)])
        break
      case 4:
        now = Buffer.concat([before, after.subarray(length)])
        break
      case 5:
        now = Buffer.concat([before, after.subarray(0, length), after])
        break
      case 6: {
        // Changes the next number, if there is one, because most attacks use numbers.
        const digits = /\d+/.exec(after.toString("latin1"))
        if (digits !== null) {
          const value = random.pick([
            String(Number(digits[0]) + 1),
            String(Math.max(0, Number(digits[0]) - 1)),
            "0",
            String(Number(digits[0]) * 2),
            "4294967296"
          ])
          now = Buffer.concat([before, after.subarray(0, digits.index), Buffer.from(value), after.subarray(digits.index + digits[0].length)])
        }
        break
      }
      default:
        now = Buffer.from(now.subarray(0, at))
    }
    if (now.length === 0) return now
  }
  return now
}
