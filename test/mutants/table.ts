import type { TrainedName } from "@seatrial/reference-engine/sample"

/** The checks that must fail for each fault. Others may fail as well. */
export const killers: Readonly<Record<string, ReadonlyArray<string>>> = {
  // Computation of the model.
  rope_theta_500000: ["text_likelihood"],
  rope_theta_12000: ["text_likelihood"],
  epsilon_huge: ["text_likelihood"],
  rope_linear_4: ["text_likelihood", "needle"],
  rope_off: ["text_likelihood", "output_sane", "far_likelihood", "needle"],
  rope_interleaved: ["text_likelihood", "far_likelihood", "needle"],
  kv_heads_tiled: ["text_likelihood", "output_sane", "needle"],
  attention_unscaled: ["text_likelihood", "output_sane", "needle"],
  last_layer_skipped: ["text_likelihood", "needle"],
  window_32: ["text_likelihood", "needle"],
  decode_position_shifted: ["decode_matches_prefill"],
  far_positions_squeezed: ["far_likelihood"],
  far_positions_fixed: ["far_likelihood"],
  far_positions_wrapped: ["far_likelihood"],
  far_positions_spread: ["far_likelihood"],
  kv_4_bit: ["text_likelihood"],
  nan_from_129: ["context_edge", "far_likelihood", "needle"],
  one_token_only: ["output_sane", "greedy_is_top"],
  garbage_after_100: ["output_sane", "decode_matches_prefill"],
  positions_fixed_from_128: ["long_answer"],
  logits_flat_from_256: ["long_answer"],
  garbage_after_400: ["long_answer"],

  // Loading of the files.
  loaded_in_8_bits: ["loaded_tensors"],
  loaded_norm_shifted: ["loaded_tensors"],
  loaded_heads_swapped: ["reference_agrees"],
  loaded_mlp_halved: ["reference_agrees"],
  loaded_channels_swapped: ["reference_agrees"],
  loaded_otherwise_later: ["loaded_tensors"],

  // Caching of prompts, and isolation of the cache.
  cached_block_of_another: ["cache_hit_equal"],
  cached_but_for_last: ["cache_hit_equal"],
  salt_ignored: ["cache_hit_equal"],
  cached_first_token_wrong: ["cache_hit_equal"],
  cached_at_64_wrong: ["cache_hit_equal"],
  cache_never_told: ["cache_hit_equal"],
  cache_overtold: ["usage_exact", "cache_hit_equal"],
  batch_corrupts: ["batch_equals_alone"],
  batch_tail_corrupts: ["large_batch"],
  seeds_mixed_in_batch: ["large_batch"],
  tokens_swapped: ["batch_equals_alone"],
  preempted_token_wrong: ["kv_pressure"],
  preempted_wrongly: ["kv_pressure"],

  // Sampling of tokens, and their log probabilities.
  best_skipped_200: ["greedy_repeats"],
  best_skipped_20: ["greedy_is_top", "greedy_repeats"],
  penalty_kept: ["greedy_is_top"],
  seed_ignored: ["sampling_obeyed"],
  seed_always_same: ["sampling_obeyed"],
  greedy_is_drawn: ["greedy_is_top", "greedy_repeats"],
  temperature_ignored: ["sampling_obeyed"],
  top_k_ignored: ["sampling_obeyed"],
  top_p_ignored: ["sampling_obeyed"],
  min_p_ignored: ["sampling_obeyed"],
  repetition_penalty_ignored: ["sampling_obeyed"],
  presence_penalty_ignored: ["sampling_obeyed"],
  frequency_penalty_ignored: ["sampling_obeyed"],
  logit_bias_ignored: ["sampling_obeyed"],
  positive_bias_ignored: ["sampling_obeyed"],
  temperature_fixed: ["sampling_obeyed"],
  logprobs_raised: ["greedy_is_top", "decode_matches_prefill"],
  logprobs_unsorted: ["greedy_is_top"],
  logprobs_of_another: ["decode_matches_prefill"],

  // Shares of drawn tokens.
  temperature_90: ["sampling_distribution"],
  temperature_twice: ["sampling_distribution"],
  temperature_after_cuts: ["sampling_distribution"],
  top_p_110: ["sampling_distribution"],
  top_p_90: ["sampling_distribution"],
  top_k_half: ["sampling_distribution"],
  min_p_half: ["sampling_distribution"],
  repetition_penalty_half: ["sampling_distribution"],
  presence_penalty_half: ["sampling_distribution"],
  frequency_penalty_half: ["sampling_distribution"],
  logit_bias_half: ["sampling_distribution"],
  chat_temperature_doubled_streamed: ["sampling_distribution"],
  texts_penalties_ignored: ["sampling_distribution"],

  // Characters of several code points.
  marks_dropped: ["characters_intact"],
  joiners_dropped_streamed: ["characters_intact"],
  composed: ["characters_intact"],
  decomposed_streamed: ["characters_intact"],
  call_characters_halved: ["characters_intact"],
  call_characters_escaped: ["characters_intact"],
  logprob_bytes_cut: ["characters_intact"],
  stop_marks_dropped: ["characters_intact"],
  echo_composed: ["characters_intact"],

  // Processing of the prompt before the model.
  bos_missing: ["template_agrees"],
  bos_double: ["template_agrees"],
  bos_double_unseen: ["template_agrees"],
  generation_prompt_missing: ["template_agrees"],
  role_token_wrong: ["template_agrees"],
  system_dropped: ["template_agrees"],
  content_trimmed: ["template_agrees"],
  empty_content_as_list: ["template_agrees"],
  past_calls_dropped: ["template_agrees"],
  functions_unseen: ["template_agrees", "tool_choice_auto"],
  encoded_by_characters: ["tokenizer_agrees"],
  detokenize_trims: ["tokenizer_agrees"],
  prompt_cut: ["context_edge"],
  limit_short: ["context_edge"],
  limit_short_8: ["context_edge"],
  error_at_limit: ["context_edge"],

  // Reading of requests.
  stop_ignored: ["stop_strings"],
  stop_first_only: ["stop_strings"],
  stop_ignored_in_texts: ["stop_strings"],
  stop_ignored_in_streamed_texts: ["stop_strings"],
  texts_limit_ignored: ["usage_exact"],
  texts_usage_not_streamed: ["stream_equals_whole"],
  texts_logprobs_dropped: ["texts_logprobs"],
  logprobs_not_streamed: ["chat_logprobs", "texts_logprobs"],
  chat_n_ignored_streamed: ["sampling_obeyed"],
  texts_n_ignored_streamed: ["sampling_obeyed"],
  chat_temperature_ignored: ["sampling_obeyed"],
  chat_seed_ignored: ["sampling_obeyed"],
  chat_limit_ignored: ["sampling_obeyed"],
  chat_logprobs_dropped: ["chat_logprobs"],
  echo_ignored: ["texts_echo"],
  prompts_all_first: ["prompts_apart"],
  prompts_reversed: ["prompts_apart"],
  chat_n_ignored: ["sampling_obeyed"],
  chat_bias_ignored: ["sampling_obeyed"],
  chat_top_k_ignored: ["sampling_obeyed"],
  chat_top_p_ignored: ["sampling_obeyed"],
  chat_min_p_ignored: ["sampling_obeyed"],
  chat_penalties_ignored: ["sampling_obeyed"],
  responses_top_p_ignored: ["responses_path"],
  messages_top_p_ignored: ["messages_path"],
  messages_top_k_ignored: ["messages_path"],
  responses_choice_ignored: ["responses_tool_choice"],
  messages_choice_ignored: ["messages_tool_choice"],
  responses_limit_ignored: ["responses_path"],
  responses_temperature_ignored: ["responses_path"],
  messages_temperature_ignored: ["messages_path"],
  responses_instructions_dropped: ["responses_path"],
  responses_tools_dropped: ["responses_path"],
  messages_system_dropped: ["messages_path"],
  messages_tools_dropped: ["messages_path"],
  messages_stop_ignored: ["messages_stop"],
  messages_stop_ignored_streamed: ["messages_stop"],
  texts_form_ignored_streamed: ["texts_json_schema"],
  responses_form_ignored_streamed: ["responses_json_schema"],
  messages_form_ignored_streamed: ["messages_json_schema"],
  texts_form_ignored: ["texts_json_mode", "texts_json_schema"],
  texts_object_ignored: ["texts_json_mode"],
  responses_form_ignored: ["responses_json_mode", "responses_json_schema"],
  messages_form_ignored: ["messages_json_schema"],
  ignore_eos_ignored: ["usage_exact"],
  max_tokens_more: ["usage_exact"],
  response_format_ignored: ["json_mode", "json_schema"],
  json_object_ignored: ["json_mode"],
  schema_as_object: ["json_schema"],
  tools_ignored: ["tool_choice_auto"],
  n_ignored: ["sampling_obeyed"],
  required_as_auto: ["tool_choice_required"],
  named_as_required: ["tool_choice_named"],
  none_as_auto: ["tool_choice_none"],
  one_call_only: ["tool_parallel"],
  single_ignored: ["tool_single"],
  results_dropped: ["tool_round_trip"],
  any_model_name: ["bad_requests"],
  bad_values_taken: ["bad_requests"],
  usage_not_streamed: ["usage_exact", "stream_equals_whole"],

  // Sending of answers.
  choices_alike: ["sampling_obeyed"],
  likeliest_named_wrongly: ["greedy_is_top"],
  usage_prompt_short: ["usage_exact"],
  usage_completion_short: ["usage_exact"],
  usage_total_wrong: ["usage_exact"],
  usage_stream_differs: ["usage_exact"],
  end_token_uncounted: ["usage_exact"],
  finish_always_stop: ["finish_reasons"],
  finish_always_length: ["finish_reasons"],
  finish_not_streamed: ["stream_equals_whole"],
  finish_twice: ["stream_equals_whole"],
  role_twice: ["stream_equals_whole"],
  done_missing: ["stream_equals_whole"],
  after_done: ["stream_equals_whole"],
  usage_with_choice: ["stream_equals_whole"],
  last_chunk_lost: ["stream_equals_whole"],
  third_chunk_lost: ["stream_equals_whole"],
  character_split: ["stream_equals_whole"],
  stop_text_leaks: ["stop_strings"],
  special_tokens_shown: ["finish_reasons"],
  never_ends: ["finish_reasons"],
  unreadable_frame: ["stream_equals_whole"],

  // Prompts of another trial.
  only_known_prompts: ["text_likelihood", "decode_matches_prefill"],
  only_known_texts: ["text_likelihood", "decode_matches_prefill"],
  only_known_texts_whole: ["text_likelihood", "decode_matches_prefill"],
  only_known_texts_streamed: ["stream_equals_whole"],
  only_known_chat: ["sampling_distribution", "responses_path"],
  only_known_chat_whole: ["stream_equals_whole"],
  only_known_chat_streamed: ["stream_equals_whole"],
  only_known_responses: ["responses_path"],
  only_known_responses_whole: ["responses_path"],
  only_known_responses_streamed: ["responses_path"],
  only_known_messages: ["messages_path"],
  only_known_messages_whole: ["messages_path"],
  only_known_messages_streamed: ["messages_path"],

  // Structured output and tool calls.
  schema_ignored: ["json_mode", "json_schema", "tool_strict"],
  schema_ignored_streamed: ["json_mode", "json_schema", "tool_strict"],
  call_markup_shown: ["tool_choice_auto"],
  call_brace_lost: ["tool_choice_auto"],
  call_brace_lost_streamed: ["tool_choice_auto"],
  call_index_lost: ["tool_choice_auto"],
  call_name_lost: ["tool_choice_auto"],
  call_told_as_stop: ["tool_choice_auto"],
  cut_call_told_whole: ["tool_round_trip"],
  content_beside_call: ["tool_choice_auto"],

  // Reasoning.
  thought_in_answer: ["reasoning_separate"],
  thought_in_answer_streamed: ["reasoning_separate"],
  thought_lost: ["reasoning_separate"],
  thought_lost_streamed: ["reasoning_separate"],
  thought_always_opened: ["thinking_toggle"],
  thought_without_end: ["reasoning_separate", "thinking_toggle"],
  responses_thought_in_answer: ["responses_path"],
  messages_thought_in_answer: ["messages_path"],
  thought_overcounted: ["reasoning_separate"],
  toggle_ignored: ["thinking_toggle"],
  schema_after_thought_ignored: ["json_schema"],

  // Paths other than chat and completions.
  responses_missing: ["responses_path"],
  responses_unended: ["responses_path"],
  responses_piece_lost: ["responses_path"],
  messages_missing: ["messages_path"],
  messages_unended: ["messages_path"],
  messages_piece_lost: ["messages_path"],
  responses_call_lost: ["responses_tools"],
  message_counted_more: ["messages_path"],
  responses_required_as_auto: ["responses_tool_choice"],
  responses_none_as_auto: ["responses_tool_choice"],
  responses_single_ignored: ["responses_tool_single"],
  responses_one_call_only: ["responses_tools"],
  responses_results_dropped: ["responses_tools"],
  responses_logprobs_dropped: ["responses_logprobs"],
  responses_tops_dropped: ["responses_logprobs"],
  responses_logprobs_not_streamed: ["responses_logprobs"],
  responses_salt_ignored: ["responses_salt"],
  responses_turns_dropped: ["responses_path"],
  responses_strict_ignored: ["responses_tool_strict"],
  responses_thought_unlimited: ["responses_path"],
  messages_salt_ignored: ["messages_salt"],
  messages_turns_dropped: ["messages_path"],
  messages_strict_ignored: ["messages_tool_strict"],
  messages_thought_unlimited: ["messages_path"],
  responses_toggle_ignored: ["responses_thinking"],
  messages_any_as_auto: ["messages_tool_choice"],
  messages_none_as_auto: ["messages_tool_choice"],
  messages_single_ignored: ["messages_tool_single"],
  messages_one_call_only: ["messages_tools"],
  messages_results_dropped: ["messages_tools"],
  messages_toggle_ignored: ["messages_thinking"],
  count_system_dropped: ["messages_count"],
  count_tools_dropped: ["messages_count"],
  count_turns_dropped: ["messages_count"],
  count_choice_ignored: ["messages_tool_choice"],
  count_toggle_ignored: ["messages_thinking"],

  // Stability and speed.
  abort_ignored: ["abort_frees"],
  abort_leaks: ["abort_frees"],
  dead_after_50: ["still_alive"],
  dies_of_bad_request: ["bad_requests"],
  bad_request_is_500: ["bad_requests"],
  one_in_30_fails: [],

  // Files that differ from the commit.
  file_tensor_zero: ["files_match_commit", "text_likelihood"],
  file_tensor_random: ["files_match_commit", "text_likelihood"],
  file_cut: ["files_match_commit", "text_likelihood"],
  file_norm_ones: ["files_match_commit", "loaded_tensors", "text_likelihood"],
  file_one_percent: ["files_match_commit", "loaded_tensors"],
  file_int8: ["files_match_commit", "loaded_tensors"],
  file_int4: ["files_match_commit", "loaded_tensors", "text_likelihood"],
  file_rows_swapped: ["files_match_commit", "text_likelihood"],
  file_head_rows_swapped: ["files_match_commit", "text_likelihood"],
  file_first_commit: ["files_match_commit", "loaded_tensors"],
  file_other_model: ["files_match_commit", "loaded_tensors", "text_likelihood"],
  file_vocabulary_swapped: ["files_match_commit", "tokenizer_agrees"],
  file_merges_fewer: ["files_match_commit", "tokenizer_agrees"],
  file_merges_reversed: ["files_match_commit", "tokenizer_agrees"],
  file_template_other: ["files_match_commit", "template_agrees"],
  file_template_no_bos: ["files_match_commit", "template_agrees"],
  file_template_no_tools: ["files_match_commit", "template_agrees", "tool_choice_auto"],
  file_end_token_wrong: ["files_match_commit", "finish_reasons"],
  file_rope_theta: ["files_match_commit", "text_likelihood"],
  file_epsilon: ["files_match_commit"],

  // Start arguments and requested settings.
  files_not_looked_at: ["files_match_commit"],
  files_writable: ["files_match_commit"],
  engine_online: ["files_match_commit"],
  folder_other: ["files_match_commit"],
  image_other: ["engine_identity"],
  version_other: ["engine_identity"],
  name_other: ["engine_identity"],
  context_other: ["engine_identity"],
  shard_missing: ["tensors_complete"],
  end_token_outside: ["config_coherent"],
  vocabulary_larger: ["config_coherent"]
}

/** The sample model of a fault, if it is not the chat model. */
export const sampleOf = (fault: string): TrainedName => (/thought|toggle/.test(fault) ? "tiny-thinker" : "tiny-chat")

/** Faults that occur at random times, in any row. */
export const anyRow: ReadonlySet<string> = new Set(["one_in_30_fails"])

/** Faults that appear only after other rows have run. */
export const needsHistory: ReadonlySet<string> = new Set(["dead_after_50", "one_in_30_fails", "best_skipped_200"])

/** Faults that appear only with the number of items of a real model. */
export const needsExtent: ReadonlySet<string> = new Set([
  "garbage_after_100",
  "positions_fixed_from_128",
  "logits_flat_from_256",
  "garbage_after_400",
  "temperature_90",
  "top_p_90",
  "top_k_half",
  "repetition_penalty_half",
  "presence_penalty_half",
  "frequency_penalty_half"
])

/** The reasons why no check of the suite must find these faults. */
export const unseen: Readonly<Record<string, string>> = {
  epsilon_large:
    "this model's numbers are so large (mean square of its embeddings 0.42) that it computes as well: texts move by 0.0066 nats in the mean and 0.0177 absolute, random tokens by 0.0121 and 0.0817, and rounding may move them by 0.01 and 0.05; found from 0.02 on",
  noise: "no fault: the suite must pass it",
  two_tokens_a_chunk: "no fault: the suite must pass it, and the benchmark's `tpot_ms` must not change",
  thought_uncounted: "no fault: some of vLLM's readers count none if the prompt opens the reasoning, so that 0 means not reported",
  stalls: "the benchmark's `stalls` show it"
}

/** Faults of adapters, with the checks of an adapter's trial that must fail. */
export const adapterKillers: Readonly<Record<string, ReadonlyArray<string>>> = {
  adapter_dropped: ["adapter_effect", "fidelity"],
  adapter_half: ["adapter_effect", "fidelity"],
  adapter_x4: ["adapter_effect", "fidelity"],
  adapter_90: ["adapter_effect"],
  adapter_matrix_lost: ["adapter_effect"],
  adapter_module_lost: ["adapter_effect"],
  adapter_layer_lost: ["adapter_effect", "fidelity"],
  adapter_base_first: ["files_match_commit", "adapter_effect"],
  cache_of_adapter_shared: ["cache_hit_equal"]
}

/** Checks that compare with an earlier trial of the commit. All other checks have the same result at a first trial. */
export const comparing: ReadonlySet<string> = new Set(["text_likelihood", "loaded_tensors"])

/**
 * What finds a fault at the first trial of a commit, for faults that a comparing check finds: the checks, or why none does.
 * `reference_agrees` needs a reference of the commit.
 */
export const firstTrial: Readonly<Record<string, ReadonlyArray<string> | string>> = {
  rope_theta_500000: ["reference_agrees"],
  rope_theta_12000: ["reference_agrees"],
  rope_linear_4: ["text_likelihood", "reference_agrees"],
  rope_off: ["text_likelihood", "reference_agrees", "output_sane", "far_likelihood"],
  rope_interleaved: ["text_likelihood", "reference_agrees", "far_likelihood"],
  kv_heads_tiled: ["text_likelihood", "reference_agrees", "output_sane"],
  attention_unscaled: ["text_likelihood", "reference_agrees", "output_sane"],
  last_layer_skipped: ["text_likelihood", "reference_agrees"],
  epsilon_huge: ["reference_agrees"],
  window_32: ["reference_agrees"],
  kv_4_bit: ["reference_agrees"],
  loaded_in_8_bits: ["loaded_tensors", "reference_agrees"],
  loaded_norm_shifted: ["loaded_tensors", "reference_agrees"],
  loaded_otherwise_later: "one value of a middle layer changes no text enough, and only the checksum of an earlier trial shows it",
  file_tensor_zero: ["files_match_commit", "reference_agrees"],
  file_tensor_random: ["files_match_commit", "reference_agrees"],
  file_cut: ["files_match_commit", "reference_agrees"],
  file_norm_ones: ["files_match_commit", "loaded_tensors", "reference_agrees"],
  file_one_percent: ["files_match_commit", "loaded_tensors", "reference_agrees"],
  file_int8: ["files_match_commit", "loaded_tensors", "reference_agrees"],
  file_int4: ["files_match_commit", "loaded_tensors", "reference_agrees"],
  file_rows_swapped: ["files_match_commit", "reference_agrees"],
  file_head_rows_swapped: ["files_match_commit", "reference_agrees"],
  file_first_commit: ["files_match_commit", "reference_agrees"],
  file_other_model: ["files_match_commit", "reference_agrees"],
  file_rope_theta: ["files_match_commit", "reference_agrees"]
}

const checkNames = (names: ReadonlyArray<string>): string => names.map((name) => `\`${name}\``).join(", ")

/** The row of a fault in the table of faults.md. */
export const tableRow = ({ name, spoils }: { readonly name: string; readonly spoils: string }): string => {
  const checks = killers[name] ?? adapterKillers[name] ?? []
  const first = firstTrial[name]
  const finders = checkNames(checks) || unseen[name] || "any row that it meets"
  const atFirst = first === undefined ? (unseen[name] === undefined ? "yes" : "-") : typeof first === "string" ? `no: ${first}` : checkNames(first)
  return `| \`${name}\` | ${spoils} | ${finders} | ${atFirst} |`
}
