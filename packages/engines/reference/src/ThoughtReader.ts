import { possibleMark } from "./possibleMark.ts"

export const openThought = "<think>"
export const closeThought = "</think>"

/** How an answer begins: inside a thought that its prompt has opened, or where the model may open one. */
export type ThoughtStart = "opened" | "may_open"

/** The ids of the marks, each one token. */
export interface ThoughtMarks {
  readonly open: number
  readonly close: number
}

/** Text that was thought, and text that was said. */
export interface Parted {
  readonly reasoning: string
  readonly content: string
}

/** How a prompt that ends with this text lets its answer begin; null where thinking was closed. */
export const thoughtStartOf = (ending: string): ThoughtStart | null => {
  const [opened, closed] = [ending.lastIndexOf(openThought), ending.lastIndexOf(closeThought)]
  if (closed > opened) return null
  return opened >= 0 ? "opened" : "may_open"
}

/** Parts one thought from the answer as it comes: `<think>...</think>` at its beginning. Nothing of the marks is given out, and nothing beside them is taken away. */
export class ThoughtReader {
  private state: "before" | "inside" | "after"
  private held = ""

  constructor(start: ThoughtStart) {
    this.state = start === "opened" ? "inside" : "before"
  }

  push(text: string): Parted {
    this.held += text
    if (this.state === "before") this.readBeginning()
    const reasoning = this.state === "inside" ? this.readThought() : ""
    if (this.state !== "after") return { reasoning, content: "" }
    const content = this.held
    this.held = ""
    return { reasoning, content }
  }

  /** What was held back for a mark that did not come. */
  finish(): Parted {
    const rest = this.held
    this.held = ""
    return this.state === "inside" ? { reasoning: rest, content: "" } : { reasoning: "", content: rest }
  }

  private readBeginning() {
    if (this.held.startsWith(openThought)) {
      this.held = this.held.slice(openThought.length)
      this.state = "inside"
    } else if (!openThought.startsWith(this.held)) {
      this.state = "after"
    }
  }

  private readThought(): string {
    const end = this.held.indexOf(closeThought)
    const known = end >= 0 ? end : this.held.length - possibleMark(this.held, closeThought)
    const thought = this.held.slice(0, known)
    this.held = this.held.slice(end >= 0 ? end + closeThought.length : known)
    if (end >= 0) this.state = "after"
    return thought
  }
}

/** Follows the tokens of one answer: which of them are thought. */
export class ThoughtFollower {
  private state: "before" | "inside" | "after"
  private readonly marks: ThoughtMarks
  /** Tokens between the marks so far. */
  count = 0

  constructor(marks: ThoughtMarks, start: ThoughtStart) {
    this.marks = marks
    this.state = start === "opened" ? "inside" : "before"
  }

  get thinks(): boolean {
    return this.state === "inside"
  }

  /** Whether the next token may open a thought. */
  get mayOpen(): boolean {
    return this.state === "before"
  }

  take(id: number) {
    if (this.state === "before") this.state = id === this.marks.open ? "inside" : "after"
    else if (this.state === "inside" && id === this.marks.close) this.state = "after"
    else if (this.state === "inside") this.count++
  }
}
