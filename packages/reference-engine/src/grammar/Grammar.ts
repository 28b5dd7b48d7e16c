/**
 * The set of valid texts, as bytes. It has few kinds of parts, so that one walk over a stack of them gives all valid
 * next bytes.
 */
export type Grammar =
  | { readonly kind: "bytes"; readonly has: ReadonlySet<number> }
  | { readonly kind: "sequence"; readonly parts: ReadonlyArray<Grammar> }
  | { readonly kind: "either"; readonly choices: ReadonlyArray<Grammar> }
  | { readonly kind: "repeated"; readonly part: Grammar; readonly least: number; readonly most: number }
  | { readonly kind: "later"; readonly grammar: () => Grammar }

export const sequence = (...parts: ReadonlyArray<Grammar>): Grammar => ({ kind: "sequence", parts })
export const either = (...choices: ReadonlyArray<Grammar>): Grammar => ({ kind: "either", choices })
/** `part` must not accept the empty text. */
export const repeated = (part: Grammar, least: number, most: number): Grammar => ({ kind: "repeated", part, least, most })
export const optional = (part: Grammar): Grammar => repeated(part, 0, 1)
/** For recursive grammars. */
export const later = (grammar: () => Grammar): Grammar => ({ kind: "later", grammar })

/** One byte out of the characters in `text` and the ranges. */
export const oneByteOf = (text: string, ...ranges: ReadonlyArray<readonly [from: number, to: number]>): Grammar => {
  const has = new Set(Buffer.from(text))
  for (const [from, to] of ranges) for (let byte = from; byte <= to; byte++) has.add(byte)
  return { kind: "bytes", has }
}

/** Exactly this text. */
export const literal = (text: string): Grammar => sequence(...[...Buffer.from(text)].map((byte): Grammar => ({ kind: "bytes", has: new Set([byte]) })))

/**
 * The parts that remain: `top`, then `rest`. Equal stacks are the same object, so that equal paths are followed once.
 */
class Stack {
  readonly top: Grammar | null
  readonly rest: Stack | null
  private readonly above = new Map<Grammar, Stack>()

  constructor(top: Grammar | null, rest: Stack | null) {
    this.top = top
    this.rest = rest
  }

  push(top: Grammar): Stack {
    const known = this.above.get(top)
    if (known !== undefined) return known
    const stack = new Stack(top, this)
    this.above.set(top, stack)
    return stack
  }
}

const fewer = new WeakMap<Grammar, Grammar>()

/** The rest of a repetition after one more part. */
const oneFewer = (grammar: Extract<Grammar, { readonly kind: "repeated" }>): Grammar => {
  const known = fewer.get(grammar)
  if (known !== undefined) return known
  const shorter = repeated(grammar.part, Math.max(0, grammar.least - 1), grammar.most - 1)
  fewer.set(grammar, shorter)
  return shorter
}

/** The state of a text, byte by byte. */
export interface Steps {
  /** Whether the text may end here. */
  readonly mayEnd: boolean
  /** Returns the state after one more byte; null if the byte is invalid. */
  readonly next: (byte: number) => Steps | null
}

/** All possible continuations after some bytes. The successor of each byte is computed once. */
export class GrammarState {
  private readonly heads: ReadonlyArray<{ readonly has: ReadonlySet<number>; readonly rest: Stack }>
  private readonly after = new Map<number, GrammarState | null>()
  /** Whether the text may end here. */
  readonly mayEnd: boolean

  constructor(stacks: Iterable<Stack>) {
    const heads: Array<{ readonly has: ReadonlySet<number>; readonly rest: Stack }> = []
    const pending = new Set(stacks)
    let mayEnd = false
    // Iterating over a set includes the elements that the loop adds.
    for (const { rest, top } of pending) {
      if (top === null || rest === null) mayEnd = true
      else if (top.kind === "bytes") heads.push({ has: top.has, rest })
      else if (top.kind === "later") pending.add(rest.push(top.grammar()))
      else if (top.kind === "either") for (const choice of top.choices) pending.add(rest.push(choice))
      else if (top.kind === "sequence") pending.add(top.parts.reduceRight((left, part) => left.push(part), rest))
      else {
        if (top.least === 0) pending.add(rest)
        if (top.most > 0) pending.add(rest.push(oneFewer(top)).push(top.part))
      }
    }
    this.heads = heads
    this.mayEnd = mayEnd
  }

  /** Whether no valid text remains. */
  get dead(): boolean {
    return this.heads.length === 0 && !this.mayEnd
  }

  /** Returns the state after one more byte; null if the byte is invalid. */
  next(byte: number): GrammarState | null {
    const known = this.after.get(byte)
    if (known !== undefined) return known
    const taken = this.heads.filter(({ has }) => has.has(byte))
    const next = taken.length === 0 ? null : new GrammarState(taken.map(({ rest }) => rest))
    this.after.set(byte, next)
    return next
  }
}

export const begin = (grammar: Grammar): GrammarState => new GrammarState([new Stack(null, null).push(grammar)])

/**
 * Any text in which each occurrence of a mark is followed by a text of the grammar. The grammar must determine its own
 * end.
 */
export const marked = (mark: string, grammar: Grammar): Steps => {
  const free = (last: string): Steps => ({
    mayEnd: true,
    next: (byte) => {
      const now = (last + String.fromCharCode(byte)).slice(-mark.length)
      return now === mark ? within(begin(grammar)) : free(now)
    }
  })
  const within = (state: GrammarState): Steps => ({
    mayEnd: false,
    next: (byte) => {
      const reached = state.next(byte)
      return reached === null ? null : reached.mayEnd ? free("") : within(reached)
    }
  })
  return free("")
}
