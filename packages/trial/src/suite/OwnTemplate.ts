import { Template } from "@huggingface/jinja"
import { strftime } from "./strftime.ts"

/** The text of a chat template and the tokens that it may write. */
export interface TemplateSource {
  readonly text: string
  readonly tokens: { readonly bos_token: string; readonly eos_token: string }
}

/** A conversation and the variables of the template. */
export interface Conversing {
  readonly messages: ReadonlyArray<object>
  readonly extra?: Readonly<Record<string, unknown>>
  /** Unix milliseconds of the day that a template writes, if it writes one. */
  readonly at?: number
}

/**
 * The chat template of the pinned commit, rendered without the engine to compare the engine's prompts with. A template
 * can run any code of its language, so it must run in a separate process.
 */
export class OwnTemplate {
  private readonly template: Template
  private readonly tokens: TemplateSource["tokens"]

  constructor(template: Template, tokens: TemplateSource["tokens"]) {
    this.template = template
    this.tokens = tokens
  }

  /**
   * Returns the prompt up to the start of the answer; null if the template refuses the conversation or needs a feature
   * that is not available here.
   */
  render({ at = 0, extra, messages }: Conversing): string | null {
    const day_written = (format: unknown) => strftime(String(format), at)
    try {
      return this.template.render({ ...extra, ...this.tokens, day_written, messages, add_generation_prompt: true })
    } catch {
      return null
    }
  }
}

/** Returns null if the text is not a template that the library can parse. */
export const readTemplate = ({ text, tokens }: TemplateSource): OwnTemplate | null => {
  try {
    // The library's own function reads the clock, and cannot be replaced under its own name.
    return new OwnTemplate(new Template(text.replaceAll(/\bstrftime_now\b/g, "day_written")), tokens)
  } catch {
    return null
  }
}
