BEGIN TRANSACTION;
CREATE TABLE checkpoint (
    namespace TEXT NOT NULL, eventhub TEXT NOT NULL, consumer_group TEXT NOT NULL,
    partition_id TEXT NOT NULL,
    "offset" TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    writer TEXT NOT NULL,
    etag TEXT NOT NULL,
    last_modified_us INTEGER NOT NULL,
    PRIMARY KEY (namespace, eventhub, consumer_group, partition_id)
) WITHOUT ROWID, STRICT;
INSERT INTO "checkpoint" VALUES('contoso.servicebus.windows.net:5671','orders','$default','0','4200',42,'host-1/0a1b2c3d/1','0000000000000013',1767225600000000);
INSERT INTO "checkpoint" VALUES('contoso.servicebus.windows.net:5671','orders','$default','1','4200',42,'host-1/0a1b2c3d/2','0000000000000014',1767225600000000);
INSERT INTO "checkpoint" VALUES('contoso.servicebus.windows.net:5671','orders','$default','10','-1',-1,'spark/0b1c2d3e/7/4f5a6b7c/3','0000000000000020',1767225600000000);
INSERT INTO "checkpoint" VALUES('contoso.servicebus.windows.net:5671','orders','$default','11','4200',42,'spark/0b1c2d3e/7/4f5a6b7c/3','0000000000000022',1767225600000000);
INSERT INTO "checkpoint" VALUES('contoso.servicebus.windows.net:5671','orders','$default','2','4200',42,'host-1/0a1b2c3d/3','0000000000000016',1767225600000000);
INSERT INTO "checkpoint" VALUES('contoso.servicebus.windows.net:5671','orders','$default','3','4200',42,'host-1/0a1b2c3d/4','0000000000000017',1767225600000000);
INSERT INTO "checkpoint" VALUES('contoso.servicebus.windows.net:5671','orders','$default','4','4200',42,'host-1/0a1b2c3d/5','0000000000000018',1767225600000000);
INSERT INTO "checkpoint" VALUES('contoso.servicebus.windows.net:5671','orders','$default','5','4200',42,'host-1/0a1b2c3d/6','000000000000001a',1767225600000000);
INSERT INTO "checkpoint" VALUES('contoso.servicebus.windows.net:5671','orders','$default','6','4200',42,'host-1/0a1b2c3d/7','000000000000001c',1767225600000000);
INSERT INTO "checkpoint" VALUES('contoso.servicebus.windows.net:5671','orders','$default','7','kafka:4711',4711,'Köln 50%/0a1b/8','000000000000001d',1767225600000000);
INSERT INTO "checkpoint" VALUES('contoso.servicebus.windows.net:5671','orders','$default','8','-1',-1,'host-1/0a1b2c3d/9','000000000000001e',1767225600000000);
INSERT INTO "checkpoint" VALUES('contoso.servicebus.windows.net:5671','orders','$default','9','4200',42,'operator//0a1b','000000000000001f',1767225600000000);
CREATE TABLE checkpoint_delivery (
    namespace TEXT NOT NULL, eventhub TEXT NOT NULL, consumer_group TEXT NOT NULL,
    partition_id TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    delivery_count INTEGER NOT NULL,
    completed TEXT NOT NULL,
    PRIMARY KEY (namespace, eventhub, consumer_group, partition_id)
) WITHOUT ROWID, STRICT;
INSERT INTO "checkpoint_delivery" VALUES('contoso.servicebus.windows.net:5671','orders','$default','10',-1,1,'[]');
INSERT INTO "checkpoint_delivery" VALUES('contoso.servicebus.windows.net:5671','orders','$default','3',42,0,'[[44, 46], [50, 50]]');
INSERT INTO "checkpoint_delivery" VALUES('contoso.servicebus.windows.net:5671','orders','$default','4',42,2,'[]');
INSERT INTO "checkpoint_delivery" VALUES('contoso.servicebus.windows.net:5671','orders','$default','5',42,1,'[[44, 45]]');
CREATE TABLE checkpoint_state (
    namespace TEXT NOT NULL, eventhub TEXT NOT NULL, consumer_group TEXT NOT NULL,
    partition_id TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    state BLOB NOT NULL,
    PRIMARY KEY (namespace, eventhub, consumer_group, partition_id)
) STRICT;
INSERT INTO "checkpoint_state" VALUES('contoso.servicebus.windows.net:5671','orders','$default','1',42,X'00FF7B7D');
INSERT INTO "checkpoint_state" VALUES('contoso.servicebus.windows.net:5671','orders','$default','2',40,X'00FF7B7D');
INSERT INTO "checkpoint_state" VALUES('contoso.servicebus.windows.net:5671','orders','$default','5',40,X'00FF7B7D');
INSERT INTO "checkpoint_state" VALUES('contoso.servicebus.windows.net:5671','orders','$default','11',42,X'00FF7B7D');
CREATE TABLE member (
    namespace TEXT NOT NULL, eventhub TEXT NOT NULL, consumer_group TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    incarnation TEXT NOT NULL,
    status TEXT NOT NULL,
    hands_over INTEGER NOT NULL,
    weight REAL NOT NULL,
    generation TEXT NOT NULL,
    lease_mode TEXT NOT NULL,
    version TEXT NOT NULL,
    etag TEXT NOT NULL,
    last_modified_us INTEGER NOT NULL,
    PRIMARY KEY (namespace, eventhub, consumer_group, owner_id)
) WITHOUT ROWID, STRICT;
INSERT INTO "member" VALUES('contoso.servicebus.windows.net:5671','orders','$default','a.b/Köln 50%','0123456789abcdef','active',1,1.0,'','partition','','0000000000000011',1767225600000000);
INSERT INTO "member" VALUES('contoso.servicebus.windows.net:5671','orders','$default','active','0123456789abcdef','active',1,1.0,'','partition','','0000000000000004',1767225600000000);
INSERT INTO "member" VALUES('contoso.servicebus.windows.net:5671','orders','$default','dead','0123456789abcdef','dead',1,1.0,'','partition','','0000000000000008',1767225600000000);
INSERT INTO "member" VALUES('contoso.servicebus.windows.net:5671','orders','$default','deployed','0123456789abcdef','active',1,1.0,'2026-11-22 (grün)','partition','1.2.3','000000000000000e',1767225600000000);
INSERT INTO "member" VALUES('contoso.servicebus.windows.net:5671','orders','$default','kafka','0123456789abcdef','active',1,1.0,'','partition','','0000000000000010',1767225600000000);
INSERT INTO "member" VALUES('contoso.servicebus.windows.net:5671','orders','$default','leaving','0123456789abcdef','leaving',1,1.0,'','partition','','0000000000000006',1767225600000000);
INSERT INTO "member" VALUES('contoso.servicebus.windows.net:5671','orders','$default','long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-name','0123456789abcdef','active',1,1.0,'','partition','','0000000000000012',1767225600000000);
INSERT INTO "member" VALUES('contoso.servicebus.windows.net:5671','orders','$default','restarting','0123456789abcdef','away',1,1.0,'','partition','','0000000000000007',1767225600000000);
INSERT INTO "member" VALUES('contoso.servicebus.windows.net:5671','orders','$default','session-active','0123456789abcdef','active',1,1.0,'','session','','0000000000000009',1767225600000000);
INSERT INTO "member" VALUES('contoso.servicebus.windows.net:5671','orders','$default','session-dead','0123456789abcdef','dead',1,1.0,'','session','','000000000000000d',1767225600000000);
INSERT INTO "member" VALUES('contoso.servicebus.windows.net:5671','orders','$default','session-leaving','0123456789abcdef','leaving',1,1.0,'','session','','000000000000000b',1767225600000000);
INSERT INTO "member" VALUES('contoso.servicebus.windows.net:5671','orders','$default','session-restarting','0123456789abcdef','away',1,1.0,'','session','','000000000000000c',1767225600000000);
INSERT INTO "member" VALUES('contoso.servicebus.windows.net:5671','orders','$default','session-standby','0123456789abcdef','reserve',1,1.0,'','session','','000000000000000a',1767225600000000);
INSERT INTO "member" VALUES('contoso.servicebus.windows.net:5671','orders','$default','standby','0123456789abcdef','reserve',1,1.0,'','partition','','0000000000000005',1767225600000000);
INSERT INTO "member" VALUES('contoso.servicebus.windows.net:5671','orders','$default','steals','0123456789abcdef','active',0,0.5,'','partition','','000000000000000f',1767225600000000);
CREATE TABLE member_numbering (
    namespace TEXT NOT NULL, eventhub TEXT NOT NULL, consumer_group TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    incarnation TEXT NOT NULL,
    numbering TEXT NOT NULL,
    PRIMARY KEY (namespace, eventhub, consumer_group, owner_id)
) WITHOUT ROWID, STRICT;
INSERT INTO "member_numbering" VALUES('contoso.servicebus.windows.net:5671','orders','$default','kafka','0123456789abcdef','kafka');
CREATE TABLE ownership (
    namespace TEXT NOT NULL, eventhub TEXT NOT NULL, consumer_group TEXT NOT NULL,
    partition_id TEXT NOT NULL,
    owner_id TEXT,
    etag TEXT NOT NULL,
    last_modified_us INTEGER NOT NULL,
    PRIMARY KEY (namespace, eventhub, consumer_group, partition_id)
) WITHOUT ROWID, STRICT;
INSERT INTO "ownership" VALUES('contoso.servicebus.windows.net:5671','orders','$default','0','host-1','0000000000000001',1767225600000000);
INSERT INTO "ownership" VALUES('contoso.servicebus.windows.net:5671','orders','$default','1',NULL,'0000000000000002',1767225600000000);
INSERT INTO "ownership" VALUES('contoso.servicebus.windows.net:5671','orders','$default','2','Köln 50%','0000000000000003',1767225600000000);
COMMIT;
PRAGMA application_id = 1702260850;
PRAGMA user_version = 4;
