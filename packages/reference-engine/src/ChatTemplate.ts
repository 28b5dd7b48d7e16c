import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Template } from "@huggingface/jinja"
import { optionalNullable, readTemplate } from "@seatrial/domain"
import * as Schema from "effect/Schema"
import { BootFailure } from "./BootFailure.ts"
import { readJsonFile } from "./ModelConfig.ts"

const TokenText = optionalNullable(Schema.Union([Schema.String, Schema.Struct({ content: Schema.String })]))
const Named = Schema.Array(Schema.Struct({ name: Schema.String, template: Schema.String }))
const ConfigFile = Schema.Struct({
  chat_template: optionalNullable(Schema.Union([Schema.String, Named, Schema.Record(Schema.String, Schema.Unknown)])),
  bos_token: TokenText,
  eos_token: TokenText
})

const isNamed = Schema.is(Named)

/**
 * The only template, or the one named `default`, as transformers chooses. Null for a dictionary, which the repository
 * screening also rejects.
 */
const chosen = (templates: typeof ConfigFile.Type.chat_template): string | null =>
  typeof templates === "string" ? templates : isNamed(templates) ? (templates.find(({ name }) => name === "default")?.template ?? null) : null

/** The template of the repository: a separate file, or a member of the tokenizer's configuration. */
const ownSource = (directory: string, config: Partial<typeof ConfigFile.Type>): string | null => {
  const file = join(directory, "chat_template.jinja")
  return existsSync(file) ? readFileSync(file, "utf8") : chosen(config.chat_template)
}

/** The template in an argument: its text, or the name of a file without braces and line breaks. */
const sourceGiven = (argument: string): string => {
  if (/[{}\n]/.test(argument)) return argument
  if (!existsSync(argument)) throw new BootFailure(`The supplied chat template (${argument}) looks like a file path, but it cannot be opened`)
  return readFileSync(argument, "utf8")
}

/** One message of a conversation with its content as text, and further members for the template. */
export interface ChatMessage {
  readonly role: string
  readonly content: string
  readonly tool_calls?: ReadonlyArray<unknown>
  readonly tool_call_id?: string
  readonly name?: string
}

/** The Jinja template of the repository, which renders a conversation as a prompt. */
export class ChatTemplate {
  private readonly template: Template | null
  /** Whether it writes tools and calls in the format of `ToolCallReader`. */
  readonly showsTools: boolean
  /** Whether it writes reasoning in the format of `ThoughtReader`. */
  readonly showsThoughts: boolean
  private readonly tokens: { readonly bos_token: string; readonly eos_token: string }

  /**
   * Reads the file or text in `given`, otherwise `chat_template.jinja` or `tokenizer_config.json`. Throws `BootFailure`
   * if the template cannot be parsed.
   */
  constructor(directory: string, argument: string | null = null) {
    const config = existsSync(join(directory, "tokenizer_config.json")) ? readJsonFile(directory, "tokenizer_config.json", ConfigFile) : {}
    const source = argument === null ? ownSource(directory, config) : sourceGiven(argument)
    const text = (token: typeof ConfigFile.Type.bos_token) => (typeof token === "string" ? token : (token?.content ?? ""))
    this.tokens = { bos_token: text(config.bos_token), eos_token: text(config.eos_token) }
    const { reasoningFormat, toolCallFormat } = readTemplate(source)
    this.showsTools = toolCallFormat === "hermes"
    this.showsThoughts = reasoningFormat === "think"
    try {
      this.template = source ? new Template(source) : null
    } catch (cause) {
      throw new BootFailure(`Failed to load the tokenizer: chat template: ${cause instanceof Error ? cause.message : "unknown"}`)
    }
  }

  /** The end token in the tokenizer's configuration; empty if there is none. */
  get endToken(): string {
    return this.tokens.eos_token
  }

  /** Returns the prompt, or the reason why it cannot be rendered. */
  render(
    messages: ReadonlyArray<ChatMessage>,
    addGenerationPrompt: boolean,
    extra: Readonly<Record<string, unknown>>,
    tools: ReadonlyArray<unknown> | null = null
  ): { readonly prompt: string } | { readonly reason: string } {
    if (this.template === null)
      return {
        reason:
          "As of transformers v4.44, default chat template is no longer allowed, so you must provide a chat template if the tokenizer does not define one."
      }
    try {
      return {
        prompt: this.template.render({ ...extra, ...this.tokens, ...(tools === null ? {} : { tools }), messages, add_generation_prompt: addGenerationPrompt })
      }
    } catch (cause) {
      return { reason: cause instanceof Error ? cause.message : "the chat template failed" }
    }
  }
}
