import { Template } from "@huggingface/jinja"
import { Option, Schema } from "effect"

const Token = Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.String, Schema.Struct({ content: Schema.String })])))
const decodeTokens = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ bos_token: Token, eos_token: Token })))

/** Templates that write the day into the prompt give another one tomorrow, and one that the engine writes at another moment. */
const tellsTime = /strftime_now|\bnow\s*\(/

/** The pinned commit's chat template, rendered by us: what the engine's prompts are held against. */
export class OwnTemplate {
  private readonly template: Template
  private readonly tokens: { readonly bos_token: string; readonly eos_token: string }

  constructor(template: Template, tokens: { readonly bos_token: string; readonly eos_token: string }) {
    this.template = template
    this.tokens = tokens
  }

  /** The prompt up to where the answer begins; null where the template refuses the conversation, or needs what we do not have. */
  render(messages: ReadonlyArray<object>, extra: Readonly<Record<string, unknown>> = {}): string | null {
    try {
      return this.template.render({ ...extra, ...this.tokens, messages, add_generation_prompt: true })
    } catch {
      return null
    }
  }
}

/** Null where there is no template, or one that we cannot hold an engine to. */
export const readOwnTemplate = (text: string | null, small: ReadonlyMap<string, string>): OwnTemplate | null => {
  if (text === null || tellsTime.test(text)) return null
  const tokens = Option.getOrNull(decodeTokens(small.get("tokenizer_config.json") ?? "{}"))
  const textOf = (token: typeof Token.Type) => (typeof token === "string" ? token : (token?.content ?? ""))
  try {
    return new OwnTemplate(new Template(text), { bos_token: textOf(tokens?.bos_token ?? null), eos_token: textOf(tokens?.eos_token ?? null) })
  } catch {
    return null
  }
}
