import type { ModelConfig } from "@seatrial/domain"
import { sglangOwnPrompts } from "../ownPrompts.ts"

/**
 * Words in the path of a model folder that make SGLang use a built-in chat template instead of the template of the
 * repository (`get_conv_template_by_model_path`).
 */
const byWord: ReadonlyArray<readonly [word: RegExp, template: string]> = [
  [/\bpoints\b/i, "points-v15-chat"],
  [/moss.*vl/i, "moss-vl"],
  [/internvl/i, "internvl-2-5"],
  [/janus/i, "janus-pro"],
  [/vicuna|llava-v1\.5|llava-next-video-7b/i, "vicuna_v1.1"],
  [/deepseek.*vl2/i, "deepseek-vl2"],
  [/llava-v1\.6-34b|llava-v1\.6-yi-34b|llava-next-video-34b|llava-onevision-qwen2/i, "chatml-llava"],
  [/^(?!.*minicpm-[vo]-4[._][67]).*minicpm-[vo]/i, "minicpmv"],
  [/phi-4-multimodal/i, "phi-4-mm"],
  [/deepseek-ocr/i, "deepseek-ocr"],
  [/unlimited/i, "unlimited-ocr"],
  [/paddleocr/i, "paddle-ocr"],
  [/whisper/i, "whisper"]
]

/**
 * Why SGLang would not use the chat template of a model, as a sentence; null if it does, if there is none, or if the
 * built-in template was written for the model's family.
 */
export const templateByName = (version: string, repo: string, config: ModelConfig): string | null => {
  const builtIn = sglangOwnPrompts(null)(config) ? undefined : byWord.find(([word]) => word.test(repo))
  return builtIn === undefined ? null : `${version} uses its built-in chat template ${builtIn[1]} for a model named ${repo} instead of the repository's.`
}
