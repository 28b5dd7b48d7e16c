import { Template } from "@huggingface/jinja"
import { strftime } from "./strftime.ts"

/** A chat template's text, and what the tokens are that it may write. */
export interface TemplateSource {
  readonly text: string
  readonly tokens: { readonly bos_token: string; readonly eos_token: string }
}

/** A conversation, and what a template is told beside it. */
export interface Conversing {
  readonly messages: ReadonlyArray<object>
  readonly extra?: Readonly<Record<string, unknown>>
  /** The day that templates which write one are to write, Unix milliseconds. */
  readonly at?: number
}

/** The pinned commit's chat template, rendered by us: what the engine's prompts are held against. What it does is whatever its text says, so that belongs into a process of its own. */
export class OwnTemplate {
  private readonly template: Template
  private readonly tokens: TemplateSource["tokens"]

  constructor(template: Template, tokens: TemplateSource["tokens"]) {
    this.template = template
    this.tokens = tokens
  }

  /** The prompt up to where the answer begins; null where the template refuses the conversation, or needs what we do not have. */
  render({ at = 0, extra, messages }: Conversing): string | null {
    const day_written = (format: unknown) => strftime(String(format), at)
    try {
      return this.template.render({ ...extra, ...this.tokens, day_written, messages, add_generation_prompt: true })
    } catch {
      return null
    }
  }
}

/** Null where it is no template that we can render. */
export const readTemplate = ({ text, tokens }: TemplateSource): OwnTemplate | null => {
  try {
    // The library's own reads the clock, and cannot be replaced by its name.
    return new OwnTemplate(new Template(text.replaceAll(/\bstrftime_now\b/g, "day_written")), tokens)
  } catch {
    return null
  }
}
