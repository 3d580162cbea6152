CREATE TABLE IF NOT EXISTS @schema@`antipode_tombstone` (t VARBINARY(256) NOT NULL, k VARBINARY(512) NOT NULL, l MEDIUMBLOB NOT NULL, h INT UNSIGNED NOT NULL, n INT UNSIGNED NOT NULL, PRIMARY KEY (t, k), KEY (h));

ALTER TABLE @schema@`@table@` ADD COLUMN `_ap` MEDIUMBLOB NULL INVISIBLE COMMENT 'antipode 1';

CREATE TRIGGER @schema@`@table@_ap_insert` BEFORE INSERT ON @schema@`@table@` FOR EACH ROW SET NEW.`_ap` = @antipode_lineage;

CREATE TRIGGER @schema@`@table@_ap_update` BEFORE UPDATE ON @schema@`@table@` FOR EACH ROW SET NEW.`_ap` = CASE WHEN @antipode_lineage IS NULL THEN OLD.`_ap` WHEN OLD.`_ap` IS NULL THEN @antipode_lineage WHEN FIND_IN_SET(@antipode_lineage, OLD.`_ap`) THEN OLD.`_ap` WHEN @antipode_passed IS NULL OR CONVERT(OLD.`_ap` USING latin1) COLLATE latin1_bin REGEXP '(^|,)[^1]|~z' THEN CONCAT(@antipode_lineage, ',', OLD.`_ap`) ELSE CONVERT(REGEXP_REPLACE(CONCAT(CONVERT(@antipode_lineage USING latin1) COLLATE latin1_bin, ',', CONVERT(REGEXP_REPLACE(CONVERT(OLD.`_ap` USING latin1) COLLATE latin1_bin, CONVERT(@antipode_passed USING latin1) COLLATE latin1_bin, '') USING latin1) COLLATE latin1_bin), ',1[0-9a-z]*(?=,|$)', '') USING latin1) END, NEW.`_ap` = IF(LENGTH(NEW.`_ap`) <= 1024 OR NEW.`_ap` <=> OLD.`_ap` OR NEW.`_ap` = @antipode_lineage, NEW.`_ap`, CONCAT(@antipode_lineage, ',1~isize.-'));

CREATE TRIGGER @schema@`@table@_ap_delete` AFTER DELETE ON @schema@`@table@` FOR EACH ROW INSERT INTO @schema@`antipode_tombstone` (t, k, l, h, n) SELECT '@table@', @old_key@, @antipode_lineage, @antipode_until, 0 FROM DUAL WHERE @antipode_lineage IS NOT NULL ON DUPLICATE KEY UPDATE l = VALUES(l), h = VALUES(h), n = (n + 1) & 65535;
