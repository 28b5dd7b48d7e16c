import { possibleMark } from "./possibleMark.ts"

export const openThought = "<think>"
export const closeThought = "</think>"

/** How an answer begins: inside reasoning that the prompt has opened, or with an optional opening mark. */
export type ThoughtStart = "opened" | "may_open"

/** The token IDs of the marks. */
export interface ThoughtMarks {
  readonly open: number
  readonly close: number
}

/** Reasoning and answer text. */
export interface Parted {
  readonly reasoning: string
  readonly content: string
}

/** How an answer begins after a prompt with this ending; null if the prompt has closed the reasoning. */
export const thoughtStartOf = (ending: string): ThoughtStart | null => {
  const [opened, closed] = [ending.lastIndexOf(openThought), ending.lastIndexOf(closeThought)]
  if (closed > opened) return null
  return opened >= 0 ? "opened" : "may_open"
}

/**
 * Separates reasoning from a streamed answer: `<think>...</think>` at its beginning. The marks themselves are removed
 * and all other text is kept.
 */
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

  /** Returns text that was held back for a mark. */
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

/** Counts the reasoning tokens of one answer. */
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

  /** Whether the next token may open the reasoning. */
  get mayOpen(): boolean {
    return this.state === "before"
  }

  take(id: number) {
    if (this.state === "before") this.state = id === this.marks.open ? "inside" : "after"
    else if (this.state === "inside" && id === this.marks.close) this.state = "after"
    else if (this.state === "inside") this.count++
  }
}
