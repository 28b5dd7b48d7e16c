import type { SuiteSubject } from "@seatrial/trial"

/** Faults outside the engine: its start arguments, or its requested settings. */
export const askedWrongly: Readonly<Record<string, { readonly spoils: string; readonly subject: (subject: SuiteSubject) => SuiteSubject }>> = {
  files_not_looked_at: {
    spoils: "the files are not compared with the commit's hashes",
    subject: (subject) => ({ ...subject, start: { ...subject.start, verifiedFiles: null } })
  },
  files_writable: { spoils: "the files can be written to", subject: (subject) => ({ ...subject, start: { ...subject.start, readOnly: false } }) },
  engine_online: { spoils: "the engine may read from the hub", subject: (subject) => ({ ...subject, start: { ...subject.start, offline: false } }) },
  folder_other: { spoils: "the engine was started with another folder", subject: (subject) => ({ ...subject, start: { ...subject.start, localPath: false } }) },
  image_other: { spoils: "the engine runs another image", subject: (subject) => ({ ...subject, start: { ...subject.start, ownImage: false } }) },
  version_other: { spoils: "the engine is of another version", subject: (subject) => ({ ...subject, engineVersion: "reference-0.2.0" }) },
  name_other: { spoils: "the model is served under another name", subject: (subject) => ({ ...subject, listedName: "other" }) },
  context_other: { spoils: "the longest context is another", subject: (subject) => ({ ...subject, maxContext: 1_008 }) },
  shard_missing: {
    spoils: "the weight files are shorter than their headers say",
    subject: (subject) => ({
      ...subject,
      repository: { ...subject.repository, weights: subject.repository.weights.map((file) => ({ ...file, size: file.size - 400_000 })) }
    })
  },
  end_token_outside: {
    spoils: "the configuration's end token is not in the vocabulary",
    subject: (subject) => ({
      ...subject,
      repository: { ...subject.repository, small: new Map([...subject.repository.small, ["config.json", JSON.stringify({ eos_token_id: 2_000 })]]) }
    })
  },
  vocabulary_larger: {
    spoils: "the tokenizer has more tokens than the embedding rows",
    subject: (subject) => ({ ...subject, repository: { ...subject.repository, config: { ...subject.repository.config, vocab_size: 500 } } })
  }
}
