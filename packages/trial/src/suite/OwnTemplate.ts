import { Template } from "@huggingface/jinja"

/** A chat template's text, and what the tokens are that it may write. */
export interface TemplateSource {
  readonly text: string
  readonly tokens: { readonly bos_token: string; readonly eos_token: string }
}

/** A conversation, and what a template is told beside it. */
export interface Conversing {
  readonly messages: ReadonlyArray<object>
  readonly extra?: Readonly<Record<string, unknown>>
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
  render({ extra, messages }: Conversing): string | null {
    try {
      return this.template.render({ ...extra, ...this.tokens, messages, add_generation_prompt: true })
    } catch {
      return null
    }
  }
}

/** Null where it is no template that we can render. */
export const readTemplate = ({ text, tokens }: TemplateSource): OwnTemplate | null => {
  try {
    return new OwnTemplate(new Template(text), tokens)
  } catch {
    return null
  }
}
