/**
 * A task with examples, to be continued by the model, and the beginning of its answer. A change of one raises the suite
 * version.
 */
export interface Golden {
  readonly prompt: string
  readonly answer: string
}

const series = (examples: ReadonlyArray<readonly [string, string]>, questions: ReadonlyArray<readonly [string, string]>): ReadonlyArray<Golden> =>
  questions.map(([question, answer]) => ({ prompt: [...examples.map(([q, a]) => `Q: ${q}\nA: ${a}\n`), `Q: ${question}\nA:`].join(""), answer }))

const capitals = series(
  [
    ["What is the capital of Italy?", "Rome"],
    ["What is the capital of Japan?", "Tokyo"]
  ],
  [
    ["What is the capital of France?", "Paris"],
    ["What is the capital of Germany?", "Berlin"],
    ["What is the capital of Spain?", "Madrid"],
    ["What is the capital of Russia?", "Moscow"],
    ["What is the capital of Greece?", "Athens"],
    ["What is the capital of Egypt?", "Cairo"]
  ]
)
const sums = series(
  [
    ["What is 2 + 3?", "5"],
    ["What is 6 x 4?", "24"]
  ],
  [
    ["What is 17 x 23?", "391"],
    ["What is 8 + 5?", "13"],
    ["What is 7 x 6?", "42"],
    ["What is 40 - 15?", "25"],
    ["What is 9 x 9?", "81"],
    ["What is 12 + 30?", "42"]
  ]
)
const copies = series(
  [
    ["Repeat this code: M3TQ-8154", "M3TQ-8154"],
    ["Repeat this code: B9XK-2207", "B9XK-2207"]
  ],
  [
    ["Repeat this code: K7QX-2931", "K7QX-2931"],
    ["Repeat this code: H4WD-6650", "H4WD-6650"],
    ["Repeat this code: T2NR-9018", "T2NR-9018"],
    ["Repeat this code: V8CJ-3476", "V8CJ-3476"]
  ]
)
const sorts = series(
  [
    ["Sort: 5, 2, 8", "2, 5, 8"],
    ["Sort: 9, 4, 6", "4, 6, 9"]
  ],
  [
    ["Sort: 7, 3, 1", "1, 3, 7"],
    ["Sort: 6, 9, 2", "2, 6, 9"],
    ["Sort: 8, 1, 5", "1, 5, 8"],
    ["Sort: 3, 7, 4", "3, 4, 7"]
  ]
)
const rows = series(
  [
    ["What comes after 3, 4, 5?", "6"],
    ["What comes after 10, 20, 30?", "40"]
  ],
  [
    ["What comes after 7, 8, 9?", "10"],
    ["What comes after 2, 4, 6?", "8"],
    ["What comes after Monday, Tuesday?", "Wednesday"],
    ["What comes after A, B, C?", "D"]
  ]
)

const columns = [capitals, copies, sums, sorts, rows]

/** All questions, alternating between kinds, so that the first few are a fair sample. */
export const goldenQuestions: ReadonlyArray<Golden> = Array.from({ length: 6 }, (_, at) => columns.flatMap((column) => column[at] ?? [])).flat()
