import { type Conversing, type OwnTemplate, readTemplate, type TemplateSource } from "./OwnTemplate.ts"
import { type OwnTokenizer, readTokenizer, type TokenizerFacts } from "./OwnTokenizer.ts"

/** The files to read. Null: the commit has none, or none that can be read. */
export interface PinnedSource {
  readonly tokenizer: { readonly file: Uint8Array; readonly config: string } | null
  readonly template: TemplateSource | null
}

export type PinnedQuestion =
  | { readonly _tag: "Read"; readonly source: PinnedSource }
  | { readonly _tag: "Encode"; readonly texts: ReadonlyArray<string>; readonly withSpecial: boolean }
  | { readonly _tag: "Decode"; readonly ids: ReadonlyArray<ReadonlyArray<number>> }
  | { readonly _tag: "Find"; readonly tokens: ReadonlyArray<string> }
  | { readonly _tag: "Render"; readonly conversations: ReadonlyArray<Conversing> }

export type PinnedAnswer =
  | { readonly _tag: "Read"; readonly tokenizer: TokenizerFacts | null; readonly template: boolean }
  | { readonly _tag: "Encoded"; readonly ids: ReadonlyArray<ReadonlyArray<number>> }
  | { readonly _tag: "Decoded"; readonly texts: ReadonlyArray<string> }
  | { readonly _tag: "Found"; readonly ids: ReadonlyArray<number | null> }
  | { readonly _tag: "Rendered"; readonly texts: ReadonlyArray<string | null> }
  | { readonly _tag: "Fault"; readonly message: string }

/** A question and its answer have the same number: the asking fiber may have been interrupted. */
export interface Numbered<A> {
  readonly number: number
  readonly words: A
}

/** Reads a tokenizer and a template once, and answers questions about them afterwards. */
export const makePinned = (): ((question: PinnedQuestion) => PinnedAnswer) => {
  let tokenizer: OwnTokenizer | null = null
  let template: OwnTemplate | null = null
  const unread = (what: string): PinnedAnswer => ({ _tag: "Fault", message: `there is no ${what} to ask` })
  const answer = (question: PinnedQuestion): PinnedAnswer => {
    if (question._tag === "Read") {
      const { source } = question
      tokenizer = source.tokenizer === null ? null : readTokenizer(source.tokenizer.file, source.tokenizer.config)
      template = source.template === null ? null : readTemplate(source.template)
      return { _tag: "Read", tokenizer: tokenizer?.facts ?? null, template: template !== null }
    }
    if (question._tag === "Render") {
      const own = template
      return own === null ? unread("template") : { _tag: "Rendered", texts: question.conversations.map((each) => own.render(each)) }
    }
    const own = tokenizer
    if (own === null) return unread("tokenizer")
    if (question._tag === "Encode") return { _tag: "Encoded", ids: question.texts.map((text) => own.encode(text, question.withSpecial)) }
    if (question._tag === "Decode") return { _tag: "Decoded", texts: question.ids.map((ids) => own.decode(ids)) }
    return { _tag: "Found", ids: question.tokens.map((token) => own.idOf(token)) }
  }
  return (question) => {
    try {
      return answer(question)
    } catch (fault) {
      return { _tag: "Fault", message: String(fault) }
    }
  }
}
