import { tinyParameters } from "../suite/thresholds.ts"

/** A question with one answer that can be checked, also if other text surrounds it. */
export interface FidelityItem {
  readonly kind: "arithmetic" | "copying" | "sorting" | "look-up" | "format" | "json" | "tool choice" | "facts"
  readonly question: string
  readonly isRight: (answer: string) => boolean
}

/** Raised by any change of an item, of its request or of its evaluation. */
export const fidelitySuite = { suite: "seatrial-fidelity", suiteVersion: 2 } as const
const seed = 20_261_121
const perKind = 25

/** Integers of mulberry32: always the same, independent of the generator of the runtime. */
const makeDraw = (start: number) => {
  let state = start >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return (mixed ^ (mixed >>> 14)) >>> 0
  }
  /** At least 0, less than `bound`. */
  const below = (bound: number): number => next() % bound
  return {
    below,
    between: (low: number, high: number): number => low + below(high - low + 1),
    of: (text: string, length: number): string => Array.from({ length }, () => text[below(text.length)] ?? "").join(""),
    /** Different values in the order of the draw. */
    several: <A>(pool: ReadonlyArray<A>, length: number): ReadonlyArray<A> => {
      const left = [...pool]
      return Array.from({ length }, () => left.splice(below(left.length), 1)).flat()
    }
  }
}
type Draw = ReturnType<typeof makeDraw>

const facts: ReadonlyArray<readonly [question: string, answer: string]> = [
  ["What is the capital of France?", "Paris"],
  ["What is the capital of Germany?", "Berlin"],
  ["What is the capital of Italy?", "Rome"],
  ["What is the capital of Spain?", "Madrid"],
  ["What is the capital of Portugal?", "Lisbon"],
  ["What is the capital of Norway?", "Oslo"],
  ["What is the capital of Sweden?", "Stockholm"],
  ["What is the capital of Finland?", "Helsinki"],
  ["What is the capital of Poland?", "Warsaw"],
  ["What is the capital of Austria?", "Vienna"],
  ["What is the capital of Hungary?", "Budapest"],
  ["What is the capital of Greece?", "Athens"],
  ["What is the capital of Egypt?", "Cairo"],
  ["What is the capital of Kenya?", "Nairobi"],
  ["What is the capital of Japan?", "Tokyo"],
  ["What is the capital of Cuba?", "Havana"],
  ["What is the capital of Canada?", "Ottawa"],
  ["What is the opposite of hot?", "cold"],
  ["What is the opposite of big?", "small"],
  ["What is the opposite of open?", "closed"],
  ["What is the opposite of early?", "late"],
  ["What day comes after Monday?", "Tuesday"],
  ["What day comes before Friday?", "Thursday"],
  ["What month comes after March?", "April"],
  ["What month comes before August?", "July"]
]
const names = ["Anna", "Ben", "Clara", "David", "Emma", "Finn", "Greta", "Hugo", "Ida", "Jonas"]
const tools: ReadonlyArray<readonly [tool: string, wish: string]> = [
  ["get_weather", "I want to know whether it rains in Oslo"],
  ["calculator", "I want to know what 48 times 19 is"],
  ["send_email", "I want to write to my sister"],
  ["set_alarm", "I want to be woken at seven"],
  ["play_music", "I want to hear a song"]
]

const numbersIn = (text: string): ReadonlyArray<string> => text.match(/\d+/gu) ?? []
const hasWord = (text: string, word: string): boolean => ` ${text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ")} `.includes(` ${word.toLowerCase()} `)
const isSequence = (wanted: ReadonlyArray<number>) => (answer: string) => numbersIn(answer).join(" ") === wanted.join(" ")

const holdsJson = (wanted: Readonly<Record<string, string | number>>) => (answer: string) => {
  const [text] = /\{[^{}]*\}/u.exec(answer) ?? []
  if (text === undefined) return false
  try {
    const parsed: unknown = JSON.parse(text)
    const entries = Object.entries(Object(parsed))
    return entries.length === Object.keys(wanted).length && entries.every(([name, value]) => wanted[name] === value)
  } catch {
    return false
  }
}

const upTo = (from: number, to: number): ReadonlyArray<number> => Array.from({ length: to - from + 1 }, (_, at) => from + at)

const makers: Readonly<Record<FidelityItem["kind"], (draw: Draw, at: number) => Omit<FidelityItem, "kind">>> = {
  arithmetic: (draw, at) => {
    const [a, b] = at % 3 === 2 ? [draw.between(2, 10), draw.between(2, 10)] : [draw.between(2, 60), draw.between(1, 39)]
    const [sign, value] = at % 3 === 0 ? ["+", a + b] : at % 3 === 1 ? ["-", Math.max(a, b) - Math.min(a, b)] : ["x", a * b]
    return { question: `What is ${Math.max(a, b)} ${sign} ${Math.min(a, b)}?`, isRight: (answer) => numbersIn(answer).at(-1) === String(value) }
  },
  copying: (draw) => {
    const code = `${draw.of("ABCDEFGHJKLMNPQRSTUVWXYZ", draw.between(2, 4))}-${draw.of("0123456789", draw.between(3, 5))}`
    return { question: `Repeat this code: ${code}`, isRight: (answer) => answer.includes(code) }
  },
  sorting: (draw) => {
    const values = draw.several(upTo(0, 9), draw.between(3, 5))
    return { question: `Sort: ${values.join(", ")}`, isRight: isSequence(values.toSorted((a, b) => a - b)) }
  },
  "look-up": (draw) => {
    const people = draw.several(names, 2)
    const codes = people.map(() => String(draw.between(1_000, 9_999)))
    const askedIndex = draw.below(2)
    return {
      question: `${people.map((name, at) => `${name}: ${codes[at]}`).join(", ")}\nWhat is the code of ${people[askedIndex]}?`,
      isRight: (answer) => numbersIn(answer).at(-1) === codes[askedIndex]
    }
  },
  format: (draw) => {
    const from = draw.between(0, 40)
    const to = from + draw.between(3, 9)
    return { question: `Count from ${from} to ${to}.`, isRight: isSequence(upTo(from, to)) }
  },
  json: (draw) => {
    const [name = ""] = draw.several(names, 1)
    const age = draw.between(5, 89)
    return { question: `Give me a JSON object with the name ${name} and the age ${age}.`, isRight: holdsJson({ name, age }) }
  },
  "tool choice": (draw, at) => {
    const [tool, task] = tools[at % tools.length] ?? ["", ""]
    const offered = draw.several(
      tools.map(([name]) => name),
      tools.length
    )
    return {
      question: `The tools are ${offered.join(", ")}. ${task}. Which tool do you use? Answer with its name only.`,
      isRight: (answer) => tools.every(([name]) => answer.includes(name) === (name === tool))
    }
  },
  facts: (_, at) => {
    const [question, answer] = facts[at] ?? ["", ""]
    return { question, isRight: (reply) => hasWord(reply, answer) }
  }
}

const kinds: ReadonlyArray<FidelityItem["kind"]> = ["arithmetic", "copying", "sorting", "look-up", "format", "json", "tool choice", "facts"]

const makeItems = (): ReadonlyArray<FidelityItem> => {
  const draw = makeDraw(seed)
  const items = new Map<string, FidelityItem>()
  for (const kind of kinds) {
    for (let at = 0; at < perKind; ) {
      const item = { kind, ...makers[kind](draw, at) }
      // A question that was drawn before is drawn again.
      if (items.has(item.question)) continue
      items.set(item.question, item)
      at++
    }
  }
  return [...items.values()]
}

/** The 200 items of `seatrial-fidelity 2` in order: a constant, so that everyone can repeat them. */
export const fidelityItems: ReadonlyArray<FidelityItem> = makeItems()

/** Number of items of each kind for models that a CPU computes: 104 in all, slightly more than rule 1 needs to pass. */
const perKindOfTiny = 13

/** The items for a model with this many parameters. */
export const itemsFor = (parameters: number): ReadonlyArray<FidelityItem> =>
  parameters < tinyParameters ? fidelityItems.filter((_, at) => at % perKind < perKindOfTiny) : fidelityItems
