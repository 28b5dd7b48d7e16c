import type { StartFailure } from "./engineLog.ts"

/** PyTorch's message, which both engines log. */
export const outOfMemory: StartFailure = {
  by: "torch",
  sign: ["CUDA out of memory. Tried to allocate"],
  code: "out_of_memory",
  text: "The GPU's memory was used up while the engine started. Try a larger host class, or a lower memory fraction."
}

export const unsupported: ReadonlyArray<StartFailure> = [
  {
    by: "transformers",
    sign: ["contains custom code which must be executed"],
    code: "remote_code_required",
    text: "The model needs Python code of its repository, which Seatrial never runs. Choose a model that the engine supports."
  },
  {
    sign: ["Model architectures", "are not supported for now"],
    code: "unsupported_architecture",
    text: "The engine does not support the model's architecture. Choose another runtime or model."
  },
  {
    by: "transformers",
    sign: ["Transformers does not recognize this architecture"],
    code: "unsupported_architecture",
    text: "The engine's version of Transformers does not support the model's architecture. Choose another runtime or model."
  }
]

export const weightsMissing: StartFailure = {
  sign: ["Cannot find any model weights with"],
  code: "weights_missing",
  text: "The repository has no weights that the engine can load. Choose another revision, or a repository with safetensors weights."
}

export const tokenizerUnreadable: StartFailure = {
  sign: ["Failed to load the tokenizer"],
  code: "tokenizer_unreadable",
  text: "The engine could not load the repository's tokenizer. Choose another revision, or a repository whose tokenizer.json the engine reads."
}

/** argparse's message. The process then ends with exit code 2. */
export const argumentsRefused: StartFailure = {
  by: "argparse",
  sign: [": error: "],
  code: "arguments_refused",
  text: "The engine refused an argument of its command line. Ask the cluster administrator for an image with the engine version that Seatrial supports."
}
