import type { EndReason } from "./Metrics.ts"
import type { StepLogprobs } from "./Sampler.ts"
import type { GeneratedToken } from "./Scheduler.ts"
import type { Seams } from "./Seams.ts"
import { TextStream } from "./TextStream.ts"
import type { ThoughtFollower } from "./ThoughtReader.ts"
import type { Vocabulary } from "./Vocabulary.ts"

/** A token with the requested log-probabilities. */
export interface ReportedToken {
  readonly id: number
  readonly logprobs: StepLogprobs | null
}

/** Text that is final, with the tokens since the previous piece. */
export interface Piece {
  readonly text: string
  readonly tokens: ReadonlyArray<ReportedToken>
  /** Tokens generated so far. */
  readonly completionTokens: number
  /** The reasoning tokens among them. */
  readonly reasoningTokens: number
  /** Prompt tokens that were found in the prefix cache. */
  readonly cachedTokens: number
}

/** The end of an answer, with its last piece of text. */
export interface Ending extends Piece {
  readonly reason: EndReason
  /** The stop string or stop token that ended the answer; null for an end-of-turn token. */
  readonly stop: string | number | null
}

/** The receivers of an answer. `onPiece` gets each piece of final text, `onEnding` the rest exactly once. */
export interface Receivers {
  readonly onPiece: (piece: Piece) => void
  readonly onEnding: (ending: Ending, promptLogprobs: ReadonlyArray<ReportedToken>) => void
}

/** The rules by which tokens become the text of an answer. */
export interface TextRules {
  readonly endTokens: ReadonlySet<number>
  readonly stopTokens: ReadonlyArray<number>
  readonly stopStrings: ReadonlyArray<string>
  readonly maxTokens: number
  readonly thought: ThoughtFollower | null
}

/** Turns the tokens of one answer into pieces of text. */
export class AnswerText {
  private readonly vocabulary: Vocabulary
  private readonly seams: Seams
  private readonly rules: TextRules
  private readonly receivers: Receivers
  private readonly text: TextStream
  private readonly promptLogprobs: Array<ReportedToken> = []
  private completionTokens = 0
  private cachedTokens = 0
  private pending: Array<ReportedToken> = []
  private pendingText = ""
  private stop: string | number | null = null

  constructor(seams: Seams, vocabulary: Vocabulary, rules: TextRules, receivers: Receivers) {
    this.vocabulary = vocabulary
    this.seams = seams
    this.rules = rules
    this.receivers = receivers
    this.text = new TextStream(rules.stopStrings, seams)
  }

  readonly onAdmitted = (cachedTokens: number): void => {
    this.cachedTokens = cachedTokens
  }

  readonly onPromptToken = (token: GeneratedToken): void => {
    this.promptLogprobs.push(token)
  }

  /** Returns true if a stop string ends the answer. */
  readonly onToken = ({ id, logprobs }: GeneratedToken): boolean => {
    const { maxTokens, stopTokens, thought } = this.rules
    this.completionTokens++
    thought?.take(id)
    this.pending.push({ id, logprobs })
    if (this.isEnd(id)) return false
    if (stopTokens.includes(id)) {
      this.stop = id
      return false
    }
    this.write(id)
    if (this.stop !== null) return true
    if (this.pendingText !== "" && this.completionTokens < maxTokens && this.pending.length >= (this.seams.chunkTokens ?? 1))
      this.receivers.onPiece(this.take())
    return false
  }

  readonly onEnd = (reason: EndReason): void => {
    const { stop } = this
    this.pendingText += stop === null || typeof stop === "number" ? this.text.finish() : ""
    this.receivers.onEnding({ ...this.take(), reason, stop }, this.promptLogprobs)
  }

  private isEnd(id: number): boolean {
    return this.rules.endTokens.has(id) && this.seams.showsSpecial !== true
  }

  /** Adds the text of a token, unless it is a mark. */
  private write(id: number) {
    if (this.seams.showsSpecial !== true && this.vocabulary.isSpecial(id)) return
    const { stop, text } = this.text.push(this.vocabulary.bytesOf(id))
    this.pendingText += text
    this.stop = stop
  }

  /** The text and tokens since the previous piece. */
  private take(): Piece {
    const { cachedTokens, completionTokens, pending: tokens, pendingText: text } = this
    this.pending = []
    this.pendingText = ""
    return { text, tokens, completionTokens, reasoningTokens: this.rules.thought?.count ?? 0, cachedTokens }
  }
}
