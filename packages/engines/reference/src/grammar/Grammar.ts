/** What a text may be, as bytes. Built from few parts, so that what may come next is told by one walk over a stack of them. */
export type Grammar =
  | { readonly kind: "bytes"; readonly has: ReadonlySet<number> }
  | { readonly kind: "sequence"; readonly parts: ReadonlyArray<Grammar> }
  | { readonly kind: "either"; readonly choices: ReadonlyArray<Grammar> }
  | { readonly kind: "repeated"; readonly part: Grammar; readonly least: number; readonly most: number }
  | { readonly kind: "later"; readonly grammar: () => Grammar }

export const sequence = (...parts: ReadonlyArray<Grammar>): Grammar => ({ kind: "sequence", parts })
export const either = (...choices: ReadonlyArray<Grammar>): Grammar => ({ kind: "either", choices })
/** `part` must not be empty itself. */
export const repeated = (part: Grammar, least: number, most: number): Grammar => ({ kind: "repeated", part, least, most })
export const optional = (part: Grammar): Grammar => repeated(part, 0, 1)
/** For what contains itself. */
export const later = (grammar: () => Grammar): Grammar => ({ kind: "later", grammar })

/** Any one byte of the characters of `text`, and of the ranges from one to another. */
export const oneByteOf = (text: string, ...ranges: ReadonlyArray<readonly [from: number, to: number]>): Grammar => {
  const has = new Set(Buffer.from(text))
  for (const [from, to] of ranges) for (let byte = from; byte <= to; byte++) has.add(byte)
  return { kind: "bytes", has }
}

/** That text alone. */
export const literal = (text: string): Grammar => sequence(...[...Buffer.from(text)].map((byte): Grammar => ({ kind: "bytes", has: new Set([byte]) })))

/** What is left to be written: `top`, then `rest`. The same parts are the same object, so that ways that come to the same are followed once. */
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
    const made = new Stack(top, this)
    this.above.set(top, made)
    return made
  }
}

const fewer = new WeakMap<Grammar, Grammar>()

/** What is left of a repetition once its part has come. */
const oneFewer = (grammar: Extract<Grammar, { readonly kind: "repeated" }>): Grammar => {
  const known = fewer.get(grammar)
  if (known !== undefined) return known
  const made = repeated(grammar.part, Math.max(0, grammar.least - 1), grammar.most - 1)
  fewer.set(grammar, made)
  return made
}

/** Where a text is, byte by byte. */
export interface Steps {
  /** Whether the text may end here. */
  readonly mayEnd: boolean
  /** After one more byte; null where it must not come. */
  readonly next: (byte: number) => Steps | null
}

/** All ways of going on after some bytes. Each byte's successor is found once. */
export class GrammarState {
  private readonly heads: ReadonlyArray<{ readonly has: ReadonlySet<number>; readonly rest: Stack }>
  private readonly after = new Map<number, GrammarState | null>()
  /** Whether the text may end here. */
  readonly mayEnd: boolean

  constructor(stacks: Iterable<Stack>) {
    const heads: Array<{ readonly has: ReadonlySet<number>; readonly rest: Stack }> = []
    const seen = new Set(stacks)
    let mayEnd = false
    // A set is gone through in the order of what is added to it meanwhile.
    for (const { rest, top } of seen) {
      if (top === null || rest === null) mayEnd = true
      else if (top.kind === "bytes") heads.push({ has: top.has, rest })
      else if (top.kind === "later") seen.add(rest.push(top.grammar()))
      else if (top.kind === "either") for (const choice of top.choices) seen.add(rest.push(choice))
      else if (top.kind === "sequence") seen.add(top.parts.reduceRight((left, part) => left.push(part), rest))
      else {
        if (top.least === 0) seen.add(rest)
        if (top.most > 0) seen.add(rest.push(oneFewer(top)).push(top.part))
      }
    }
    this.heads = heads
    this.mayEnd = mayEnd
  }

  /** Whether nothing can be written that ends. */
  get dead(): boolean {
    return this.heads.length === 0 && !this.mayEnd
  }

  /** The state after one more byte; null where it must not come. */
  next(byte: number): GrammarState | null {
    const known = this.after.get(byte)
    if (known !== undefined) return known
    const taken = this.heads.filter(({ has }) => has.has(byte))
    const found = taken.length === 0 ? null : new GrammarState(taken.map(({ rest }) => rest))
    this.after.set(byte, found)
    return found
  }
}

export const begin = (grammar: Grammar): GrammarState => new GrammarState([new Stack(null, null).push(grammar)])

/** Any text, in which a mark is followed by a text of the grammar each time that it comes; that has to tell its end by itself. */
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
