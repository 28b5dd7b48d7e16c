/**
 * SQL for the settings of a revision without the flags that follow from its commit (architecture, chat template,
 * generation configuration). No caller requested these flags, and another commit may need different ones. `revision`:
 * the alias of its row.
 */
const retainedSettings = (revision: string): string => `CASE WHEN ${revision}.settings ? 'engine_flags' THEN jsonb_set(${revision}.settings, '{engine_flags}', (
    SELECT coalesce(jsonb_object_agg(flag.key, flag.value), '{}'::jsonb) FROM jsonb_each(${revision}.settings -> 'engine_flags') flag
    WHERE ${revision}.estimate #>> ARRAY['chosen_by', 'engine_flags.' || flag.key] IS DISTINCT FROM 'model'))
  ELSE ${revision}.settings END`

/**
 * SQL for the settings of a create that omits them: the settings of the serving revision, or else of the model's last
 * run. `model`: the alias of its row.
 */
export const previousSettings = (model: string): string => `coalesce(
  (SELECT ${retainedSettings("r")} FROM revisions r WHERE r.org_id = ${model}.org_id AND r.id = ${model}.active_revision_id),
  (SELECT coalesce(${retainedSettings("r")}, d.serving) FROM deployments d LEFT JOIN revisions r ON r.org_id = d.org_id AND r.id = d.revision_id
    WHERE d.org_id = ${model}.org_id AND d.model_id = ${model}.id ORDER BY d.created_at DESC, d.id DESC LIMIT 1),
  '{}'::jsonb)`

/** SQL for who chose each setting of `previousSettings`; null if the last run has only settings from its caller. */
export const previousChoices = (model: string): string => `coalesce(
  (SELECT coalesce(r.estimate -> 'chosen_by', '{}'::jsonb) FROM revisions r WHERE r.org_id = ${model}.org_id AND r.id = ${model}.active_revision_id),
  (SELECT coalesce(r.estimate -> 'chosen_by', d.kept_choices) FROM deployments d LEFT JOIN revisions r ON r.org_id = d.org_id AND r.id = d.revision_id
    WHERE d.org_id = ${model}.org_id AND d.model_id = ${model}.id ORDER BY d.created_at DESC, d.id DESC LIMIT 1))`
