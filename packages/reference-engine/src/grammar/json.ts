import { either, type Grammar, later, literal, oneByteOf, optional, repeated, sequence } from "./Grammar.ts"

/** Maximum sizes of parts that the schema does not limit. Randomly generated text must end. */
export const longest = { text: 256, digits: 15, fraction: 9, items: 32, members: 32, depth: 12 } as const

const digit = oneByteOf("0123456789")
const hex = oneByteOf("0123456789abcdefABCDEF")
const tail = oneByteOf("", [0x80, 0xbf])
const bytes = (from: number, to: number) => oneByteOf("", [from, to])

/** One character of a JSON string, in well-formed UTF-8 or escaped. */
const character = either(
  oneByteOf("", [0x20, 0x21], [0x23, 0x5b], [0x5d, 0x7e]),
  sequence(bytes(0xc2, 0xdf), tail),
  sequence(bytes(0xe0, 0xe0), bytes(0xa0, 0xbf), tail),
  sequence(oneByteOf("", [0xe1, 0xec], [0xee, 0xef]), tail, tail),
  sequence(bytes(0xed, 0xed), bytes(0x80, 0x9f), tail),
  sequence(bytes(0xf0, 0xf0), bytes(0x90, 0xbf), tail, tail),
  sequence(bytes(0xf1, 0xf3), tail, tail, tail),
  sequence(bytes(0xf4, 0xf4), bytes(0x80, 0x8f), tail, tail),
  sequence(
    literal("\\"),
    either(
      oneByteOf('"\\/bfnrt'),
      sequence(literal("u"), either(sequence(oneByteOf("0123456789abcefABCEF"), hex), sequence(oneByteOf("dD"), oneByteOf("01234567"))), hex, hex)
    )
  )
)

export const text = (least: number, most: number): Grammar => sequence(literal('"'), repeated(character, least, most), literal('"'))

export const integer = sequence(optional(literal("-")), either(literal("0"), sequence(oneByteOf("123456789"), repeated(digit, 0, longest.digits - 1))))

export const decimal = sequence(
  integer,
  optional(sequence(literal("."), repeated(digit, 1, longest.fraction))),
  optional(sequence(oneByteOf("eE"), optional(oneByteOf("+-")), repeated(digit, 1, 2)))
)

export const comma = sequence(literal(","), optional(literal(" ")))
export const colon = sequence(literal(":"), optional(literal(" ")))

/** A list of `least` to `most` items. */
export const list = (item: Grammar, least: number, most: number): Grammar =>
  sequence(
    literal("["),
    most === 0 ? sequence() : either(...(least === 0 ? [sequence()] : []), sequence(item, repeated(sequence(comma, item), Math.max(0, least - 1), most - 1))),
    literal("]")
  )

/** An object with any members whose values match `value`. */
export const map = (value: Grammar): Grammar => {
  const member = sequence(text(0, longest.text), colon, value)
  return sequence(literal("{"), either(sequence(), sequence(member, repeated(sequence(comma, member), 0, longest.members - 1))), literal("}"))
}

const valueWithin = (depth: number): Grammar => {
  const scalars = [text(0, longest.text), decimal, literal("true"), literal("false"), literal("null")]
  if (depth === 0) return either(...scalars)
  const inner = later(() => values(depth - 1))
  return either(...scalars, list(inner, 0, longest.items), map(inner))
}

const grammars = new Map<number, Grammar>()
const values = (depth: number): Grammar => {
  const known = grammars.get(depth)
  if (known !== undefined) return known
  const grammar = valueWithin(depth)
  grammars.set(depth, grammar)
  return grammar
}

/** Any JSON value. */
export const anyValue: Grammar = values(longest.depth)
/** Any JSON object. */
export const anyObject: Grammar = map(values(longest.depth - 1))
