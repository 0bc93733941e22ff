import GRDB

/// The tables. A migration that has been shipped is never edited.
enum Schema {
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1 desired state") { try $0.execute(sql: desired) }
        migrator.registerMigration("1 devices and their reports") { try $0.execute(sql: reports) }
        migrator.registerMigration("1 summary") { try $0.execute(sql: summary) }
        migrator.registerMigration("1 events and requests") { try $0.execute(sql: eventsAndRequests) }
        // No time up to this one, in milliseconds, is signed again: devices take a lower one for a replay.
        migrator.registerMigration("2 signed time") {
            try $0.execute(sql: "ALTER TABLE meta ADD COLUMN signed_at INTEGER NOT NULL DEFAULT 0")
        }
        // A device that speaks as a later incarnation has been enrolled since; of earlier removals it is not known. is_back:
        // enrolled again, and remembered for what was forgotten of it.
        migrator.registerMigration("3 incarnation of removed devices") {
            try $0.execute(
                sql: """
                    ALTER TABLE removed_devices ADD COLUMN incarnation INTEGER NOT NULL DEFAULT 9007199254740991;
                    ALTER TABLE removed_devices ADD COLUMN is_back INTEGER NOT NULL DEFAULT 0 CHECK (is_back IN (0, 1));
                    """)
        }
        migrator.registerMigration("4 when device-apps were classed") { try $0.execute(sql: classed) }
        migrator.registerMigration("5 shapes tell of destroyed keys") { try $0.execute(sql: destroyedKeys) }
        // The newest first: by when they were stored, and those of one moment as each device has numbered them.
        migrator.registerMigration("6 events by time") {
            try $0.execute(
                sql: """
                    CREATE INDEX events_by_time
                    ON events (stored_at, device, incarnation, boot, number, kind, app)
                    """)
        }
        // Of what start, of the present incarnation, the last presence has told: reports of later ones may come before theirs.
        migrator.registerMigration("7 announced starts") {
            try $0.execute(
                sql: """
                    ALTER TABLE devices ADD COLUMN announced INTEGER NOT NULL DEFAULT 0;
                    UPDATE devices SET announced = boot WHERE agent IS NOT NULL;
                    """)
        }
        migrator.registerMigration("8 keys left elsewhere", migrate: addLeftKeys)
        migrator.registerMigration("9 keys left on several disks") { try $0.execute(sql: leftKeysByDisk) }
        // Of a removed device the last start that was heard on that disk, 0 where it is not known: an image of the disk goes on
        // from before it.
        migrator.registerMigration("10 last starts of removed devices") {
            try $0.execute(sql: "ALTER TABLE left_keys ADD COLUMN boot INTEGER NOT NULL DEFAULT 0")
        }
        return migrator
    }

    /// Until then a warning of the device was all that told of it, with the names of five apps at most.
    private static func addLeftKeys(_ db: Database) throws {
        try db.execute(sql: leftKeys)
        let told = "came back on another disk: the keys of "
        let apps = try String.fetchAll(db, sql: "SELECT name FROM apps")
        for row in try Row.fetchAll(db, sql: "SELECT id, name, incarnation, warning FROM devices WHERE warning NOTNULL")
        {
            let warning: String = row[3]
            if warning.hasSuffix("a cloned or restored image") {
                try db.execute(sql: "UPDATE devices SET copied = 1 WHERE id = ?", arguments: [row[0] as Int64])
            }
            guard warning.hasPrefix(told), let list = warning.split(separator: "(").last?.prefix(while: { $0 != ")" })
            else { continue }
            let named = list.hasSuffix("…") ? apps : list.split(separator: ", ").map(String.init)
            for app in named {
                try db.execute(
                    sql: """
                        INSERT INTO left_keys (app, device, incarnation, at, epoch, revision)
                        SELECT ?, ?, ?, 0, epoch, revision FROM meta
                        """, arguments: [app, row[1] as String, row[2] as Int64])
            }
            try db.execute(sql: "UPDATE devices SET warning = NULL WHERE id = ?", arguments: [row[0] as Int64])
        }
    }

    private static let leftKeys = """
        -- Keys of which nobody can say any more whether they are gone: of a device that came as that incarnation on another
        -- disk, or was removed as that, and then had these groups (their names, with spaces between). They are on that disk,
        -- where it is known (0: a status told of it, and the presence is to come); epoch and revision are the newest of that time.
        CREATE TABLE left_keys (
            app TEXT NOT NULL,
            device TEXT NOT NULL,
            incarnation INTEGER NOT NULL,
            at INTEGER NOT NULL,
            epoch INTEGER NOT NULL,
            revision INTEGER NOT NULL,
            removed_groups TEXT,
            disk INTEGER,
            PRIMARY KEY (app, device, incarnation)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX left_keys_by_device ON left_keys (device);
        -- The name of the disk that the last presence was of; NULL where that was not told.
        ALTER TABLE devices ADD COLUMN disk INTEGER;
        -- Whether a copy of the disk was heard, or an older state of it, in the present incarnation.
        ALTER TABLE devices ADD COLUMN copied INTEGER NOT NULL DEFAULT 0 CHECK (copied IN (0, 1));
        CREATE INDEX copied_devices ON devices (name) WHERE copied = 1;
        """

    private static let leftKeysByDisk = """
        -- As before, of each disk: -1 where nobody knows of which, 0 while a presence is to come that tells whether they are on
        -- another one at all.
        CREATE TABLE left_keys_by_disk (
            app TEXT NOT NULL,
            device TEXT NOT NULL,
            incarnation INTEGER NOT NULL,
            disk INTEGER NOT NULL,
            at INTEGER NOT NULL,
            epoch INTEGER NOT NULL,
            revision INTEGER NOT NULL,
            removed_groups TEXT,
            PRIMARY KEY (app, device, incarnation, disk)
        ) STRICT, WITHOUT ROWID;
        INSERT INTO left_keys_by_disk
            SELECT app, device, incarnation,
                iif(disk IS NULL OR disk = 0 AND removed_groups IS NOT NULL, -1, disk), at, epoch, revision, removed_groups
            FROM left_keys;
        DROP TABLE left_keys;
        ALTER TABLE left_keys_by_disk RENAME TO left_keys;
        CREATE INDEX left_keys_by_device ON left_keys (device);
        -- Of what start, of the present incarnation, the last presence was by which the disk was told from others.
        ALTER TABLE devices ADD COLUMN judged INTEGER NOT NULL DEFAULT 0;
        UPDATE devices SET judged = announced;
        """

    private static let desired = """
        -- session counts the controller's own connections: a device that was heard in an earlier one is unknown.
        CREATE TABLE meta (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            fleet TEXT NOT NULL,
            epoch INTEGER NOT NULL CHECK (epoch >= 1),
            revision INTEGER NOT NULL CHECK (revision >= 0),
            session INTEGER NOT NULL CHECK (session >= 1)
        ) STRICT;
        CREATE TRIGGER meta_rises BEFORE UPDATE ON meta
        WHEN NEW.epoch < OLD.epoch OR NEW.revision < OLD.revision OR NEW.session < OLD.session OR NEW.fleet <> OLD.fleet
        BEGIN SELECT RAISE(ABORT, 'epoch, revision and session never go back'); END;

        -- Everything below desired/ but trust. wire is what was published, byte for byte; value is NULL for a tombstone.
        -- layer: 0 all, 1 group, 2 device.
        CREATE TABLE documents (
            path TEXT NOT NULL PRIMARY KEY,
            layer INTEGER NOT NULL CHECK (layer IN (0, 1, 2)),
            target TEXT NOT NULL CHECK ((layer = 0) = (target = '')),
            app TEXT NOT NULL,
            aspect TEXT NOT NULL,
            epoch INTEGER NOT NULL CHECK (epoch >= 1),
            revision INTEGER NOT NULL UNIQUE CHECK (revision >= 1),
            change_epoch INTEGER NOT NULL,
            change INTEGER NOT NULL CHECK (change <= revision),
            issued_at INTEGER NOT NULL,
            changed_by TEXT NOT NULL,
            why TEXT,
            value TEXT,
            retired INTEGER NOT NULL CHECK (retired IN (0, 1) AND (retired = 0 OR value IS NOT NULL)),
            wire BLOB NOT NULL CHECK (length(wire) BETWEEN 1 AND 65536),
            UNIQUE (layer, target, app, aspect)
        ) STRICT;
        CREATE INDEX documents_by_app ON documents (app, aspect);

        CREATE TABLE history (
            revision INTEGER PRIMARY KEY,
            epoch INTEGER NOT NULL,
            at INTEGER NOT NULL,
            changed_by TEXT NOT NULL,
            why TEXT,
            target TEXT NOT NULL,
            app TEXT NOT NULL,
            aspect TEXT NOT NULL,
            old TEXT,
            new TEXT
        ) STRICT;
        CREATE INDEX history_by_app ON history (app, revision);

        CREATE TABLE groups (
            name TEXT NOT NULL PRIMARY KEY,
            priority INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE members (
            device TEXT NOT NULL,
            "group" TEXT NOT NULL REFERENCES groups (name) ON DELETE CASCADE,
            PRIMARY KEY (device, "group")
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX members_by_group ON members ("group", device);
        """

    private static let reports = """
        -- state: 0 never heard, 1 offline, else the session in which it was last heard online.
        CREATE TABLE devices (
            id INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            enrolled INTEGER,
            incarnation INTEGER NOT NULL,
            boot INTEGER NOT NULL,
            state INTEGER NOT NULL CHECK (state >= 0),
            connection TEXT,
            since INTEGER,
            agent TEXT,
            warning TEXT
        ) STRICT;
        CREATE INDEX devices_by_since ON devices (since);
        CREATE TABLE removed_devices (
            name TEXT NOT NULL PRIMARY KEY,
            at INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE apps (
            id INTEGER PRIMARY KEY CHECK (id BETWEEN 1 AND 65535),
            name TEXT NOT NULL UNIQUE
        ) STRICT;
        -- What a status says about the ten policies, without times and messages: most device-apps share a few of them.
        CREATE TABLE shapes (
            id INTEGER PRIMARY KEY,
            app INTEGER NOT NULL REFERENCES apps (id),
            key BLOB NOT NULL,
            UNIQUE (app, key)
        ) STRICT;
        -- Which override layers speak to a device-app, by aspect, and since when some device-app is told so.
        CREATE TABLE classes (
            id INTEGER PRIMARY KEY,
            app INTEGER NOT NULL REFERENCES apps (id),
            key TEXT NOT NULL,
            since INTEGER NOT NULL,
            UNIQUE (app, key)
        ) STRICT;
        -- One row a status. id = device * 65536 + app, so a status is found, and a device's apps are, without an index.
        CREATE TABLE device_apps (
            id INTEGER PRIMARY KEY,
            shape INTEGER NOT NULL,
            class INTEGER NOT NULL,
            incarnation INTEGER NOT NULL,
            boot INTEGER NOT NULL,
            seq INTEGER NOT NULL,
            at INTEGER NOT NULL,
            detail BLOB NOT NULL
        ) STRICT;
        CREATE INDEX device_apps_by_shape ON device_apps (shape);
        CREATE TRIGGER device_apps_order BEFORE UPDATE OF incarnation, boot, seq ON device_apps
        WHEN (NEW.incarnation, NEW.boot, NEW.seq) < (OLD.incarnation, OLD.boot, OLD.seq)
        BEGIN SELECT RAISE(ABORT, 'the order of statuses never goes back'); END;
        """

    private static let summary = """
        -- How many device-apps have a shape, a class and a device in a state: kept by the triggers, read by status.
        CREATE TABLE summary (
            shape INTEGER NOT NULL REFERENCES shapes (id),
            class INTEGER NOT NULL REFERENCES classes (id),
            state INTEGER NOT NULL,
            count INTEGER NOT NULL CHECK (count >= 0),
            PRIMARY KEY (shape, class, state)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX summary_by_class ON summary (class);

        CREATE TRIGGER device_apps_counted AFTER INSERT ON device_apps BEGIN
            INSERT INTO summary (shape, class, state, count)
            VALUES (NEW.shape, NEW.class, (SELECT state FROM devices WHERE id = NEW.id >> 16), 1)
            ON CONFLICT DO UPDATE SET count = count + 1;
        END;
        CREATE TRIGGER device_apps_uncounted AFTER DELETE ON device_apps BEGIN
            UPDATE summary SET count = count - 1
            WHERE shape = OLD.shape AND class = OLD.class
                AND state = (SELECT state FROM devices WHERE id = OLD.id >> 16);
        END;
        CREATE TRIGGER device_apps_recounted AFTER UPDATE OF shape, class ON device_apps
        WHEN NEW.shape <> OLD.shape OR NEW.class <> OLD.class BEGIN
            UPDATE summary SET count = count - 1
            WHERE shape = OLD.shape AND class = OLD.class
                AND state = (SELECT state FROM devices WHERE id = OLD.id >> 16);
            INSERT INTO summary (shape, class, state, count)
            VALUES (NEW.shape, NEW.class, (SELECT state FROM devices WHERE id = NEW.id >> 16), 1)
            ON CONFLICT DO UPDATE SET count = count + 1;
        END;
        CREATE TRIGGER devices_recounted AFTER UPDATE OF state ON devices WHEN NEW.state <> OLD.state BEGIN
            UPDATE summary SET count = count - moved.number
            FROM (
                SELECT shape, class, count(*) AS number FROM device_apps
                WHERE id BETWEEN NEW.id << 16 AND (NEW.id << 16) + 65535 GROUP BY shape, class
            ) AS moved
            WHERE summary.shape = moved.shape AND summary.class = moved.class AND summary.state = OLD.state;
            INSERT INTO summary (shape, class, state, count)
            SELECT shape, class, NEW.state, count(*) FROM device_apps
            WHERE id BETWEEN NEW.id << 16 AND (NEW.id << 16) + 65535 GROUP BY shape, class
            ON CONFLICT DO UPDATE SET count = count + excluded.count;
        END;
        CREATE TRIGGER devices_forgotten BEFORE DELETE ON devices BEGIN
            DELETE FROM device_apps WHERE id BETWEEN OLD.id << 16 AND (OLD.id << 16) + 65535;
        END;
        """

    private static let classed = """
        -- When a device-app came, or came into another class: what decides for it may be older than its being told so.
        -- Kept for an hour or two.
        CREATE TABLE classed (
            id INTEGER PRIMARY KEY,
            at INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX classed_by_time ON classed (at);
        CREATE TRIGGER device_apps_unclassed AFTER DELETE ON device_apps BEGIN
            DELETE FROM classed WHERE id = OLD.id;
        END;
        ALTER TABLE classes DROP COLUMN since;
        """

    /// As ``Shape`` writes it; the ninth element of a detail says whether the keys are there, the third whether the app runs.
    private static let destroyedKeys = """
        CREATE TEMPORARY TABLE destroyed (id INTEGER PRIMARY KEY, app INTEGER, key BLOB);
        INSERT INTO destroyed
        SELECT device_apps.id, shapes.app, CAST(
            CAST(shapes.key AS TEXT) || iif(CAST(detail AS TEXT) ->> '$[2]', 'destroyed running', 'destroyed') || char(10)
            AS BLOB)
        FROM device_apps JOIN shapes ON shapes.id = device_apps.shape
        WHERE json_valid(CAST(detail AS TEXT)) AND NOT CAST(detail AS TEXT) ->> '$[8]';
        INSERT INTO shapes (app, key) SELECT DISTINCT app, key FROM destroyed;
        UPDATE device_apps SET shape = shapes.id FROM destroyed JOIN shapes USING (app, key)
        WHERE device_apps.id = destroyed.id;
        DROP TABLE destroyed;
        """

    private static let eventsAndRequests = """
        -- Events and log-level changes, each once.
        CREATE TABLE events (
            device INTEGER NOT NULL REFERENCES devices (id) ON DELETE CASCADE,
            incarnation INTEGER NOT NULL,
            boot INTEGER NOT NULL,
            number INTEGER NOT NULL CHECK (number >= 1),
            app TEXT NOT NULL,
            kind TEXT NOT NULL,
            at INTEGER NOT NULL,
            stored_at INTEGER NOT NULL,
            body BLOB NOT NULL,
            PRIMARY KEY (device, incarnation, boot, number)
        ) STRICT, WITHOUT ROWID;
        -- All events of a boot up to through are stored, or known to be lost.
        CREATE TABLE marks (
            device INTEGER NOT NULL REFERENCES devices (id) ON DELETE CASCADE,
            incarnation INTEGER NOT NULL,
            boot INTEGER NOT NULL,
            through INTEGER NOT NULL CHECK (through >= 0),
            PRIMARY KEY (device, incarnation, boot)
        ) STRICT, WITHOUT ROWID;
        -- Events that the device had to drop before they were stored.
        CREATE TABLE gaps (
            device INTEGER NOT NULL REFERENCES devices (id) ON DELETE CASCADE,
            incarnation INTEGER NOT NULL,
            boot INTEGER NOT NULL,
            first INTEGER NOT NULL,
            last INTEGER NOT NULL CHECK (last >= first),
            at INTEGER NOT NULL,
            PRIMARY KEY (device, incarnation, boot, first)
        ) STRICT, WITHOUT ROWID;
        -- What was answered to a change, for a day: the same request again gets the same bytes.
        CREATE TABLE requests (
            user TEXT NOT NULL,
            id TEXT NOT NULL,
            at INTEGER NOT NULL,
            response BLOB NOT NULL,
            PRIMARY KEY (user, id)
        ) STRICT;
        CREATE INDEX requests_by_time ON requests (at);
        """
}
