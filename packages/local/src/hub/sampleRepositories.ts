import { type TrainedName, trainedFiles } from "@seatrial/reference-engine/sample"
import { Schema } from "effect"
import { giantConfig, giantWeights } from "./giant.ts"
import { makeRepository, type SampleRepository } from "./SampleRepository.ts"

type Files = Readonly<Record<string, string | Uint8Array>>

const trained = (name: TrainedName): Files => Object.fromEntries(trainedFiles(name))

const pick = (files: Files, pattern: RegExp): Files => Object.fromEntries(Object.entries(files).filter(([path]) => pattern.test(path)))

const decodeObject = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Json)))

/** A configuration that makes engines load a Python module of the repository. */
const withAutoMap = (config: string | Uint8Array | undefined): string =>
  json({
    ...decodeObject(Buffer.from(config ?? "{}").toString()),
    auto_map: { AutoConfig: "modeling_tiny.TinyConfig", AutoModelForCausalLM: "modeling_tiny.TinyForCausalLM" }
  })

const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

/**
 * The samples: a small trained chat model with two commits (`v1` is the first), two adapters for it and one of them
 * merged into it, a reasoning model with and without a switch, the first commit of the chat model as a gated
 * repository, a model that requires its own Python code, one with pickled weights only, and a far too large one of
 * which only the headers exist.
 */
export const sampleRepositories = (): ReadonlyArray<SampleRepository> => {
  const first = trained("tiny-chat-first")
  const second = trained("tiny-chat")
  const tokenizer = pick(second, /^(tokenizer.*\.json|special_tokens_map\.json|generation_config\.json)$/)
  return [
    makeRepository({
      name: "seatrial/tiny-chat",
      commits: [
        { title: "First weights", files: first, tag: "v1" },
        { title: "Second weights", files: second }
      ]
    }),
    ...(["tiny-chat-adapter", "tiny-chat-greeter", "tiny-chat-sailor", "tiny-thinker", "tiny-thinker-always"] as const).map((name) =>
      makeRepository({ name: `seatrial/${name}`, commits: [{ title: "Trained weights", files: trained(name) }] })
    ),
    makeRepository({ name: "seatrial/tiny-chat-gated", gated: true, commits: [{ title: "First weights", files: first }] }),
    makeRepository({
      name: "seatrial/tiny-chat-remote-code",
      commits: [
        {
          title: "A configuration that names Python of the repository",
          files: {
            ...second,
            "config.json": withAutoMap(second["config.json"]),
            "modeling_tiny.py": 'raise RuntimeError("The code of a repository must never be run.")\n'
          }
        }
      ]
    }),
    makeRepository({
      name: "seatrial/tiny-chat-pickled",
      commits: [
        {
          title: "Pickled weights",
          files: { ...pick(second, /^(?!.*\.safetensors)/), "pytorch_model.bin": Buffer.from("PK\u0003\u0004 no weights: nothing may load this file\n") }
        }
      ]
    }),
    makeRepository({
      name: "seatrial/giant-70b",
      license: "llama3.1",
      commits: [
        {
          title: "Headers of 70 billion parameters",
          files: { ...tokenizer, "README.md": "# A model too large for the machines of a sample\n", "config.json": json(giantConfig), ...giantWeights() }
        }
      ]
    })
  ]
}
