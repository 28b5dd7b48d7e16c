import { Commit, type RepositoryFacts } from "@seatrial/domain"
import type { TrainedName } from "@seatrial/reference-engine/sample"
import { Schema } from "effect"
import { tinyConfig } from "../models/modelConfigs.ts"
import type { Files } from "./serveSample.ts"

const TokenizerConfig = Schema.fromJsonString(Schema.Struct({ chat_template: Schema.String }))
const text = (files: Files, name: string) => Buffer.from(files.get(name) ?? new Uint8Array()).toString("utf8")

/** The screening result of a sample model. */
export const factsOf = (name: TrainedName, pinned: Files): RepositoryFacts => ({
  repo: `seatrial/${name}`,
  ref: "main",
  commit: Commit.make("0123456789abcdef0123456789abcdef01234567"),
  license: "apache-2.0",
  gated: false,
  files: [...pinned].map(([path, bytes]) => ({ path, size: bytes.length, blob_id: "", sha256: null })),
  config: tinyConfig,
  weights_bytes: 1_444_096,
  parameters: 722_048,
  chat_template: Schema.decodeUnknownSync(TokenizerConfig)(text(pinned, "tokenizer_config.json")).chat_template
})
